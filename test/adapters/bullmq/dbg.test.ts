import { perSecond } from 'flyball';
import { test } from 'vitest';
import { addJobs, Bench, untilCompleted } from './bench.ts';
test('dbg', async (context) => {
  for (let round = 0; round < 6; round++) {
    const bench = new Bench(context);
    const queue = bench.queue();
    const governor = bench.governor({ calls: perSecond(100, { burst: 5 }) });
    const r = governor.reserveN.bind(governor);
    const log: any[] = [];
    await addJobs(queue, 200);
    const w = bench.worker(queue, { governor, cost: (job) => { log.push([job.data.n, 'ask', +performance.now().toFixed(2)]); return 1; } }, { concurrency: 20 });
    let k = 0;
    governor.reserveN = async (c, o) => { const a = performance.now(); const d: any = await r(c, o); log.push([k++, 'granted', d.allowed, +performance.now().toFixed(2), d.startsInMs, +(d.startsAtMonoMs).toFixed(2)]); return d; };
    await untilCompleted(queue, 200);
    const t0 = bench.starts[0]!.atMs;
    bench.starts.forEach((s, i) => { if (i && s.data.n < bench.starts[i - 1]!.data.n) {
      console.log(round, 'inversion at', i, bench.starts.slice(i - 3, i + 3).map((s) => `${s.data.n}@${s.atMs.toFixed(2)} s${s.attemptsStarted}`));
      const ns = new Set(bench.starts.slice(i - 2, i + 2).map((s) => s.data.n));
      console.log(log.filter((l) => ns.has(l[0])).map((l) => JSON.stringify(l)).join('\n'));
    } });
    console.log(round, JSON.stringify(w.governing));
    await w.close();
  }
});

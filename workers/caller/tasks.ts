import { type Governor, Throttled } from 'flyball';
import type { Counters } from '../process/messages.ts';
import type { CostRange } from '../process/options.ts';
import type { Answer, ServiceClient } from '../process/service-client.ts';

export const kinds = ['call', 'hold', 'complete'] as const;

/**
 * What a call does. `call`: a plain call. `hold`: occupies the service, with the fencing number of its slot.
 * `complete`: asks a language model; its tokens are estimated first and settled when they are known.
 */
export type Kind = (typeof kinds)[number];

/** One governed call, from the wait for it to its end. */
export type Task = (governor: Governor) => Promise<void>;

export interface TaskOptions {
  readonly kind: Kind;
  readonly workMs: CostRange;
  readonly tokens: CostRange;
  readonly estimate: number;
}

type Counts = { -readonly [Name in 'served' | 'refused' | 'running']: Counters[Name] };

export function taskOf(options: TaskOptions, service: ServiceClient, counts: Counts): Task {
  const { workMs, tokens, estimate } = options;
  const counted = async (call: Promise<Answer>): Promise<Answer> => {
    counts.running++;
    try {
      const answer = await call;
      if (answer.status === 200) counts.served++;
      else counts.refused++;
      return answer;
    } finally {
      counts.running--;
    }
  };
  const tasks: Record<Kind, Task> = {
    async call(governor) {
      await governor
        .run({}, async () => {
          const plain = { cost: 1, job: '', key: '', attempt: 1, ageMs: 0 };
          const { status, retryAfterMs } = await counted(service.call(plain));
          // Thrown, not returned, so that the governor learns that it was too much.
          if (status === 429) throw new Throttled({ retryAfterMs: retryAfterMs ?? 0 });
        })
        .catch((error: unknown) => {
          if (!(error instanceof Throttled)) throw error;
        });
    },
    async hold(governor) {
      await governor.run({}, (grant) => counted(service.hold(grant.fence!, draw(workMs))));
    },
    async complete(governor) {
      const used = ({ body }: Answer) => (body as { tokens?: number }).tokens ?? 0;
      await governor.run(
        {
          cost: { requests: 1, tokens: estimate },
          settle: (answer) => ({ requests: 1, tokens: used(answer) }),
        },
        () => counted(service.complete(tokens.min, tokens.max)),
      );
    },
  };
  return tasks[options.kind];
}

function draw({ min, max }: CostRange): number {
  return min + Math.floor(Math.random() * (max - min + 1));
}

import type { AddressInfo } from 'node:net';
import { createService, type ServiceOptions } from './downstream/server.ts';
import { onStop } from './process/lifecycle.ts';
import { createLog } from './process/log.ts';
import { command, wholeNumber } from './process/options.ts';

interface DownstreamOptions extends ServiceOptions {
  host: string;
  port: number;
}

const options = command('downstream', 'A fragile HTTP service: it answers 429 to calls over its limit.')
  .option('--host <address>', 'address to listen on', '127.0.0.1')
  .option('--port <number>', 'port to listen on; 0 takes a free one', wholeNumber(0, 65_535), 0)
  .option('--rate <tokens>', 'tokens a second the service allows', wholeNumber(1), 200)
  .option('--burst <tokens>', 'tokens it allows at once', wholeNumber(1), 40)
  .option('--service-ms <ms>', 'how long it works on a call', wholeNumber(0, 3_600_000), 5)
  .option('--slots <number>', 'held calls it can have at once', wholeNumber(1), 20)
  .option(
    '--requests-per-minute <number>',
    'requests to its language model in any minute',
    wholeNumber(1),
    1_000,
  )
  .option(
    '--tokens-per-minute <number>',
    'tokens its language model uses in any minute',
    wholeNumber(1),
    100_000,
  )
  .parse()
  .opts<DownstreamOptions>();

const log = createLog('downstream');
const server = createService(options);

server.on('error', (error) => {
  log.fatal({ err: error, host: options.host, port: options.port }, 'cannot listen');
  process.exit(1);
});

server.listen(options.port, options.host, () => {
  const { address, port } = server.address() as AddressInfo;
  log.info({ address, port, rate: options.rate, burst: options.burst }, 'listening');
  // On stdout even with a parent, so that every starter reads the port in the same way.
  process.stdout.write(`${JSON.stringify({ ready: true, host: address, port, pid: process.pid })}\n`);
});

onStop(log, async () => {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  // Running calls get their answer. Idle connections do not close by themselves.
  const sweep = setInterval(() => server.closeIdleConnections(), 20);
  await closed;
  clearInterval(sweep);
});

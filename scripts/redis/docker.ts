import type { Log } from './binary.ts';
import { run } from './run.ts';

const image = 'redis:7-alpine';

export interface DockerRedis {
  url: string;
  port: number;
  how: string;
  stop(): Promise<void>;
}

/**
 * Starts a Redis in Docker. It ends with `stop()`; testcontainers removes it if this process dies first.
 *
 * @throws Error within about 2 seconds if no Docker engine answers; a client without one is common.
 */
export async function dockerRedis(args: readonly string[], log: Log = () => {}): Promise<DockerRedis> {
  let engine: string;
  try {
    engine = (
      await run('docker', ['version', '--format', '{{.Server.Version}}'], { timeoutMs: 2_000 })
    ).trim();
  } catch (error) {
    throw new Error('no Docker engine answers', { cause: error });
  }
  log(`starting ${image} in Docker ${engine}`);
  // Loaded only now: it is large, and of no use without an engine.
  const { GenericContainer } = await import('testcontainers');
  const container = await new GenericContainer(image)
    .withCommand(['redis-server', '--save', '', '--appendonly', 'no', ...args])
    .withExposedPorts(6379)
    .start();
  const port = container.getMappedPort(6379);
  return {
    url: `redis://${container.getHost()}:${port}`,
    port,
    how: `${image} in Docker ${engine}`,
    async stop() {
      await container.stop();
    },
  };
}

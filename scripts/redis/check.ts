import { Redis } from 'ioredis';

/** The oldest version the governor's scripts run on. */
const oldest = [6, 2] as const;

export interface CheckedRedis {
  version: string;
  /** The server's own process id, by which a private server is told from one that took its port. */
  pid: number;
}

/** Whether a version such as `7.0.15` is one the governor runs on. */
export function isSupported(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major > oldest[0] || (major === oldest[0] && minor >= oldest[1]);
}

export const supported = `${oldest.join('.')} or newer`;

/**
 * Asks a Redis for PING and its version.
 *
 * @throws Error if it does not answer within 2 seconds, or is too old. The URL's password is not repeated.
 */
export async function checkRedis(url: string): Promise<CheckedRedis> {
  const client = new Redis(url, {
    lazyConnect: true,
    connectTimeout: 2_000,
    commandTimeout: 2_000,
    enableReadyCheck: false,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  // The same failure rejects connect(); without a listener it would be printed as well.
  let lastError: Error | undefined;
  client.on('error', (error: Error) => {
    lastError = error;
  });
  try {
    await client.connect();
    await client.ping();
    const info = await client.info('server');
    const version = /^redis_version:(\S+)/m.exec(info)?.[1] ?? 'unknown';
    if (!isSupported(version)) throw new Error(`expected Redis ${supported}, got ${version}`);
    return { version, pid: Number(/^process_id:(\d+)/m.exec(info)?.[1]) };
  } catch (error) {
    const why = lastError ?? (error as Error);
    throw new Error(`Redis at ${withoutPassword(url)}: ${why.message}`, { cause: error });
  } finally {
    client.disconnect();
  }
}

function withoutPassword(url: string): string {
  return url.replace(/\/\/[^@/]*@/, '//');
}

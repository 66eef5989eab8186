import { run } from './run.ts';

/** A Redis server that can be run on this machine. */
export interface ServerBinary {
  path: string;
  /** What it needs in its environment, for example where its libraries lie. */
  env: Record<string, string>;
  version: string;
  /** Where it is from, for people: `redis-server 7.0.15 on the PATH`. */
  how: string;
}

/** Told what is done, a line at a time. */
export type Log = (line: string) => void;

/** Asks a server binary for its version, which also proves that it runs here. */
export async function versionOf(path: string, env: Record<string, string>): Promise<string> {
  const said = await run(path, ['--version'], { env, timeoutMs: 5_000 });
  const version = /\bv=(\d+(?:\.\d+)*)/.exec(said)?.[1];
  if (version === undefined)
    throw new Error(`${path} --version: expected "v=<number>", got "${said.trim()}"`);
  return version;
}

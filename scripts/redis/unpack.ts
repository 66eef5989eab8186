import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Apt } from './apt.ts';
import { isSupported, supported } from './check.ts';
import { run } from './run.ts';

/** A server package, and the package beside it that holds the shared program the server is a link to. */
const flavours = [
  { server: 'redis-server', tools: 'redis-tools' },
  { server: 'valkey-server', tools: 'valkey-tools' },
];

/** Downloads and unpacks the server and what it lacks into `work/root`; returns the package's version. */
export async function unpackServer(apt: Apt, work: string): Promise<string> {
  for (const { server, tools } of flavours) {
    const candidate = await apt.candidate(server);
    if (candidate === undefined) continue;
    // Without the epoch ("5:"): a colon would end the path inside LD_LIBRARY_PATH.
    const version = candidate.replace(/^\d+:/, '');
    if (!isSupported(version)) throw new Error(`${server} is ${version}, expected ${supported}`);
    await unpackWithLibraries(apt, [server, tools], work);
    return version;
  }
  throw new Error(`apt knows no ${flavours.map(({ server }) => server).join(' or ')}`);
}

/**
 * Unpacks packages, then their dependencies level by level, until the server misses no library.
 *
 * Asking the loader which libraries are missing, not a fixed list, is what makes this hold on every release;
 * libraries that the machine has are left alone, above all libc, which must match the loader.
 */
async function unpackWithLibraries(apt: Apt, names: readonly string[], work: string): Promise<void> {
  const root = join(work, 'root');
  const seen = new Set<string>(names);
  let level = [...names];
  for (let depth = 0; level.length > 0; depth++) {
    for (const file of await apt.download(level, join(work, `level-${depth}`))) {
      await run('dpkg-deb', ['-x', file, root]);
    }
    const missing = await missingLibraries(root);
    if (missing.length === 0) return;
    const wanted = (await apt.dependencies(level)).filter(
      (name) => /^(lib|lua)/.test(name) && !seen.has(name),
    );
    for (const name of wanted) seen.add(name);
    level = await notInstalled([...new Set(wanted)]);
    if (level.length === 0) throw new Error(`no package found for ${missing.join(', ')}`);
  }
}

async function missingLibraries(root: string): Promise<string[]> {
  const path = serverIn(root);
  if (path === undefined) throw new Error('the packages hold no Redis server');
  const linked = await run('ldd', [path], { env: libraryEnv(root) });
  return [...linked.matchAll(/^\s*(\S+) => not found/gm)].map(([, name]) => name!);
}

async function notInstalled(names: readonly string[]): Promise<string[]> {
  const selections = await run('dpkg', ['--get-selections']);
  const installed = new Set([...selections.matchAll(/^([^\s:]+)\S*\s+install$/gm)].map(([, name]) => name));
  return names.filter((name) => !installed.has(name));
}

/** Where the server lies in an unpacked tree, if it is there. */
export function serverIn(root: string): string | undefined {
  const paths = flavours.map(({ server }) => join(root, 'usr/bin', server));
  return paths.find((path) => existsSync(path));
}

/** What a program of an unpacked tree needs in its environment: every directory of it with a shared library. */
export function libraryEnv(root: string): Record<string, string> {
  const found = new Set<string>();
  for (const top of ['lib', 'usr/lib']) {
    const directory = join(root, top);
    if (!existsSync(directory)) continue;
    for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
      if (/\.so(\.|$)/.test(entry.name)) found.add(entry.parentPath);
    }
  }
  return { LD_LIBRARY_PATH: [...found].join(':') };
}

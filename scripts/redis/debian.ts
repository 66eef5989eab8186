import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openApt } from './apt.ts';
import { type Log, type ServerBinary, versionOf } from './binary.ts';
import { libraryEnv, serverIn, unpackServer } from './unpack.ts';

const cache = fileURLToPath(new URL('../../.cache/redis', import.meta.url));

/**
 * Has a Redis server from the distribution's package, unpacked into this project's cache.
 *
 * Nothing is installed and no root is needed: the packages are only unpacked, and the server is run with
 * LD_LIBRARY_PATH pointing at the libraries that the machine lacks. A later call finds it in the cache.
 *
 * @throws Error if this is not Debian or Ubuntu, the packages cannot be fetched, or they are too old.
 */
export async function debianBinary(log: Log = () => {}): Promise<ServerBinary> {
  const cached = await fromCache();
  if (cached !== undefined) return cached;
  if (!existsSync('/usr/bin/apt-get') || !existsSync('/usr/bin/dpkg-deb')) {
    throw new Error('no Debian or Ubuntu to take a package from');
  }

  mkdirSync(cache, { recursive: true });
  removeAbandoned();
  log('fetching a Redis server from the distribution’s package (once; kept in .cache/redis)');
  const refusals: string[] = [];
  // The machine's lists are quick but may be missing, or name files the mirror no longer has.
  for (const lists of ['system', 'own'] as const) {
    const work = mkdtempSync(join(cache, '.unpack-'));
    try {
      const version = await unpackServer(await openApt(work, lists), work);
      publish(join(work, 'root'), join(cache, `${version}-${process.arch}`));
      const fresh = await fromCache();
      if (fresh !== undefined) return fresh;
      throw new Error(
        `the unpacked ${version} does not run here; remove .cache/redis if it is from another machine`,
      );
    } catch (error) {
      refusals.push((error as Error).message);
    } finally {
      rmSync(work, { recursive: true, force: true });
    }
  }
  throw new Error(`no Redis from the distribution’s package: ${refusals.join('; ')}`);
}

async function fromCache(): Promise<ServerBinary | undefined> {
  if (!existsSync(cache)) return undefined;
  const names = readdirSync(cache).filter((name) => !name.startsWith('.'));
  for (const name of names.sort().reverse()) {
    const root = join(cache, name);
    const path = serverIn(root);
    if (path === undefined) continue;
    const env = libraryEnv(root);
    try {
      const version = await versionOf(path, env);
      return { path, env, version, how: `the distribution’s package ${name}` };
    } catch {
      // Unpacked on another system that shares this folder: of no use on this one.
    }
  }
  return undefined;
}

/** Puts a finished tree in its place at one stroke, so that no process ever sees half of one. */
function publish(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    // Another process was first; what it put there is the same package.
    if (!['ENOTEMPTY', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
}

/** Clears away what a process left that was killed while unpacking. */
function removeAbandoned(): void {
  for (const name of readdirSync(cache).filter((name) => name.startsWith('.unpack-'))) {
    const path = join(cache, name);
    const ageMs = Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
    if (ageMs > 3_600_000) rmSync(path, { recursive: true, force: true });
  }
}

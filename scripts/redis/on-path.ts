import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { type ServerBinary, versionOf } from './binary.ts';
import { isSupported, supported } from './check.ts';

const names = ['redis-server', 'valkey-server'];

/** @throws Error if the PATH has no server, or only one that is too old. */
export async function binaryOnPath(): Promise<ServerBinary> {
  for (const name of names) {
    const path = which(name);
    if (path === undefined) continue;
    const version = await versionOf(path, {});
    if (!isSupported(version)) throw new Error(`${path} is ${version}, expected ${supported}`);
    return { path, env: {}, version, how: `${name} ${version} on the PATH` };
  }
  throw new Error(`no ${names.join(' or ')} on the PATH`);
}

function which(name: string): string | undefined {
  for (const directory of (process.env.PATH ?? '').split(delimiter)) {
    const path = join(directory, name);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // Not in this directory.
    }
  }
  return undefined;
}

import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from './run.ts';

/** apt's read-only half: look up and download packages, never install them. */
export interface Apt {
  /** The version it would download, or undefined if it knows none. */
  candidate(name: string): Promise<string | undefined>;
  /** The names that packages depend on directly. */
  dependencies(names: readonly string[]): Promise<string[]>;
  /** Downloads packages, checked against the distribution's signatures, and returns the files' paths. */
  download(names: readonly string[], directory: string): Promise<string[]>;
}

/**
 * Opens apt with the machine's own sources and keys, but everything it writes below `directory`.
 *
 * That is what lets it work without root, and what keeps it from changing the machine when it is root.
 *
 * @param lists - `system` reads the package lists the machine has, which may be none or old; `own` fetches
 *   fresh ones into `directory`.
 */
export async function openApt(directory: string, lists: 'system' | 'own'): Promise<Apt> {
  const config = join(directory, 'apt.conf');
  const cache = join(directory, 'cache');
  mkdirSync(join(cache, 'archives', 'partial'), { recursive: true });
  const settings = [
    `Dir::Cache "${cache}/";`,
    // No user _apt could write here; apt would warn and go on as root anyway.
    'APT::Sandbox::User "root";',
    'Acquire::Languages "none";',
    'Acquire::Retries "1";',
    'Acquire::http::Timeout "20";',
    'Acquire::https::Timeout "20";',
    // Hooks that images add to tidy the system's own state have no business with ours.
    '#clear APT::Update::Pre-Invoke;',
    '#clear APT::Update::Post-Invoke;',
    '#clear APT::Update::Post-Invoke-Success;',
  ];
  if (lists === 'own') {
    const own = join(directory, 'lists');
    mkdirSync(join(own, 'partial'), { recursive: true });
    settings.push(`Dir::State::lists "${own}/";`);
  }
  writeFileSync(config, `${settings.join('\n')}\n`);

  if (lists === 'own') {
    // It fails if any one source does, such as a vendor's; whether a package can be had shows later.
    await run('apt-get', ['-c', config, 'update'], { timeoutMs: 240_000 }).catch(() => {});
  }

  return {
    async candidate(name) {
      const policy = await run('apt-cache', ['-c', config, 'policy', name]);
      const version = /^\s+Candidate: (\S+)/m.exec(policy)?.[1];
      return version === '(none)' ? undefined : version;
    },

    async dependencies(names) {
      const only = ['recommends', 'suggests', 'conflicts', 'breaks', 'replaces', 'enhances'];
      const flags = only.map((kind) => `--no-${kind}`);
      const tree = await run('apt-cache', ['-c', config, 'depends', ...flags, ...names]);
      return [...tree.matchAll(/^\s+\|?(?:Pre)?Depends: ([a-z0-9][^\s:]*)/gm)].map(([, name]) => name!);
    },

    async download(names, into) {
      mkdirSync(into, { recursive: true });
      await run('apt-get', ['-c', config, 'download', ...names], { cwd: into, timeoutMs: 120_000 });
      return readdirSync(into).map((file) => join(into, file));
    },
  };
}

/*
  Installs the dependencies if they are missing or older than package-lock.json, so that one command is
  enough after a clone or a pull. Needs nothing but Node and npm; takes no time when there is nothing to do.
*/
import { spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

const wantedAt = changedAt('package-lock.json');
// npm writes this one at the end of an install, so it is also the sign that the install was finished.
const installedAt = changedAt('node_modules/.package-lock.json');

if (wantedAt === undefined) {
  console.error(`ensure-installed: expected a package-lock.json in ${root}, found none`);
  process.exitCode = 1;
} else if (installedAt === undefined) {
  install('there is no finished install in node_modules');
} else if (installedAt < wantedAt) {
  install('package-lock.json has changed since the last install');
}

function install(why) {
  console.error(`ensure-installed: ${why}; running npm ci`);
  // All output on stderr: stdout belongs to the command that comes next.
  const { status, error } = spawnSync('npm', ['ci', '--no-audit', '--no-fund'], {
    cwd: root,
    stdio: ['ignore', 2, 2],
  });
  if (error) console.error(`ensure-installed: cannot run npm: ${error.message}`);
  process.exitCode = status ?? 1;
}

function changedAt(path) {
  return statSync(new URL(`../${path}`, import.meta.url), { throwIfNoEntry: false })?.mtimeMs;
}

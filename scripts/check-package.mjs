/*
  Checks the package as its users get it: builds, packs, installs the tarball in an empty project and uses it
  there. One line a check; exits with 1 if any fails.
*/
import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const { devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const work = mkdtempSync(join(tmpdir(), 'flyball-package-'));
const consumer = join(work, 'consumer');
const packed = join(work, 'packed');
const unpacked = join(consumer, 'node_modules', 'flyball');
let tarball = '';
let failed = 0;

try {
  // Each of these needs the one before it.
  const ready =
    check('builds', () => run('npm', ['run', 'build'])) &&
    check('packs', pack) &&
    check('installs beside ioredis and bullmq', install);
  if (ready) {
    check('ships code that reads no file', readsNoFile);
    check('runs', () => run('node', ['run.mjs'], consumer));
    check('compiles under tsc --strict', compiles);
    check('passes publint --strict', () => run(bin('publint'), ['run', tarball, '--strict']));
    check('passes attw for ES modules', () =>
      run(bin('attw'), [tarball, '--profile', 'esm-only', '--no-definitely-typed', '--no-emoji']),
    );
  }
} finally {
  rmSync(work, { recursive: true, force: true });
}
process.exitCode = failed === 0 ? 0 : 1;

function check(name, work) {
  const startedAt = Date.now();
  let problem;
  try {
    work();
  } catch (error) {
    problem = error.message;
    failed++;
  }
  const seconds = ((Date.now() - startedAt) / 1000).toFixed(1);
  console.log(
    `${problem === undefined ? 'ok  ' : 'FAIL'} ${name} (${seconds} s)${problem ? `\n${problem}` : ''}`,
  );
  return problem === undefined;
}

function pack() {
  mkdirSync(packed);
  // It has just been built; the prepack script would build it again.
  run('npm', ['pack', '--ignore-scripts', '--pack-destination', packed]);
  tarball = join(
    packed,
    readdirSync(packed).find((name) => name.endsWith('.tgz')),
  );
}

function install() {
  mkdirSync(consumer);
  writeFileSync(
    join(consumer, 'package.json'),
    '{ "name": "consumer", "private": true, "type": "module" }\n',
  );
  for (const file of readdirSync(join(root, 'scripts/package-consumer'))) {
    copyFileSync(join(root, 'scripts/package-consumer', file), join(consumer, file));
  }
  const peers = ['ioredis', 'bullmq', '@types/node'].map((name) => `${name}@${devDependencies[name]}`);
  run('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', tarball, ...peers], consumer);
}

/** Lua must be inside the JavaScript: a bundler does not bring other files along. */
function readsNoFile() {
  const files = readdirSync(unpacked, { recursive: true });
  const lua = files.filter((file) => file.endsWith('.lua'));
  if (lua.length > 0) throw new Error(`expected no .lua in the package, found ${lua.join(', ')}`);
  const readers = files.filter(
    (file) =>
      file.endsWith('.js') &&
      /\breadFile|node:fs|['"]fs['"]/.test(readFileSync(join(unpacked, file), 'utf8')),
  );
  if (readers.length > 0) throw new Error(`expected no code that reads files, found ${readers.join(', ')}`);
}

function compiles() {
  const compilerOptions = {
    strict: true,
    exactOptionalPropertyTypes: true,
    module: 'nodenext',
    target: 'es2023',
    types: ['node'],
    noEmit: true,
  };
  writeFileSync(join(consumer, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['types.ts'] }));
  const { stdout } = spawnSync(bin('tsc'), ['--pretty', 'false'], { cwd: consumer, encoding: 'utf8' });
  // Declarations are checked too, which skipLibCheck would not do, but other packages' are not ours to mend.
  const ours = stdout.split('\n').filter((line) => /^(types\.ts|node_modules\/flyball\/|error )/.test(line));
  if (ours.length > 0) throw new Error(ours.join('\n'));
}

function bin(name) {
  return join(root, 'node_modules', '.bin', name);
}

function run(command, args, cwd = root) {
  const { status, signal, stdout, stderr, error } = spawnSync(command, args, { cwd, encoding: 'utf8' });
  if (error) throw new Error(`cannot run ${command}: ${error.message}`);
  if (status !== 0) throw new Error(`${command} ended with ${status ?? signal}:\n${stdout}${stderr}`.trim());
}

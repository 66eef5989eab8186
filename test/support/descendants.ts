import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

/** The processes under `pid`, all generations. */
export function descendantsOf(pid: number): number[] {
  const parents = process.platform === 'linux' ? parentsFromProc() : parentsFromPs();
  const found = [pid];
  for (const parent of found) {
    for (const [child, itsParent] of parents) if (itsParent === parent) found.push(child);
  }
  return found.slice(1);
}

/** Each process's parent. Small Linux images have no `ps`. */
function parentsFromProc(): Map<number, number> {
  const parents = new Map<number, number>();
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      // The name, in brackets, may hold anything; the parent is the second field after it.
      const stat = readFileSync(`/proc/${entry}/stat`, 'utf8');
      parents.set(Number(entry), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]));
    } catch {
      // It ended while we looked.
    }
  }
  return parents;
}

function parentsFromPs(): Map<number, number> {
  const lines = execFileSync('ps', ['-axo', 'pid=,ppid='], { encoding: 'utf8' }).trim().split('\n');
  return new Map(lines.map((line) => line.trim().split(/\s+/).map(Number) as [number, number]));
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

import type { Job } from 'bullmq';
import type { Cost, Keys, Priority, ReservationHandle } from '../../../core/calls/desk.ts';
import { handled } from '../../../core/checks.ts';
import { InvalidOptionError } from '../../../core/errors.ts';
import type { Govern } from '../options.ts';
import type { Shared } from '../state.ts';

/** What a job asks for, as the user's options say. */
export interface JobRequest {
  readonly cost: Cost;
  readonly keys: Keys | undefined;
  readonly priority: Priority;
  /** Why it passes whatever the limits hold; undefined: it does not. */
  readonly bypass: string | undefined;
}

/** @throws whatever an option of the user's throws; InvalidOptionError for a bypass that is no reason. */
export function requestOf<J extends Job>(govern: Govern<J>, job: J): JobRequest {
  const bypass = reasonOf(govern.bypass(job));
  const cost = handled(govern.cost(job));
  const keys = handled(govern.keys(job));
  return { bypass, cost, keys, priority: bypass === undefined ? handled(govern.priority(job)) : 'normal' };
}

/** Charges a job that passes by hand. What `onBypass` throws is reported: the job is charged, and runs. */
export async function bypass<J extends Job>(
  { govern, counters, report }: Shared<J>,
  job: J,
  { cost, keys }: JobRequest,
  reason: string,
): Promise<ReservationHandle> {
  const grant = await govern.governor.forceN(cost, keys === undefined ? {} : { keys });
  try {
    handled(govern.onBypass(job, reason));
  } catch (error) {
    report(error);
  }
  counters.bypassed += 1;
  return grant;
}

/** Anything but a text is no reason: a promise, which `async` would make of it, must not let every job pass. */
function reasonOf(reason: unknown): string | undefined {
  if (reason === undefined || reason === null || reason === false || reason === '') return undefined;
  if (typeof reason === 'string') return reason;
  handled(reason);
  throw new InvalidOptionError(
    'what govern.bypass returns',
    'a reason (a string), undefined or false',
    reason,
  );
}

// The end tells jobs of one queue apart.
const MAX_HOLDER_LENGTH = 200;

// The same in whichever process the job starts: one that was restarted after its worker froze takes its slot over.
export function holderOf(job: Job): string {
  return `${job.queueQualifiedName}:${job.id}`.slice(-MAX_HOLDER_LENGTH);
}

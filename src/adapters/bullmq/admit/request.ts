import type { Job } from 'bullmq';
import type { Cost, Keys, Priority, ReservationHandle } from '../../../core/calls/desk.ts';
import { handled } from '../../../core/checks.ts';
import { InvalidOptionError } from '../../../core/errors.ts';
import type { Govern } from '../options.ts';

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

/** Charges a job that passes by hand. @param failed - Told of what `onBypass` throws: the job is charged, and runs. */
export async function bypass<J extends Job>(
  { governor, onBypass }: Govern<J>,
  job: J,
  { cost, keys }: JobRequest,
  reason: string,
  failed: (error: unknown) => void,
): Promise<ReservationHandle> {
  const grant = await governor.forceN(cost, keys === undefined ? {} : { keys });
  try {
    handled(onBypass(job, reason));
  } catch (error) {
    failed(error);
  }
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

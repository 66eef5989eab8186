import { type LimitsOptions, perMinute } from 'flyball';
import { flags } from '../../parent/flags.ts';
import { Fleet } from '../../parent/fleet.ts';
import { orAbort } from '../../parent/or-abort.ts';
import { Service } from '../../parent/service.ts';
import { pause } from '../../parent/waiting.ts';
import { atLeast, atMost, exactly, type ProveCase } from '../case.ts';
import { minuteFigures } from '../figures/minutes.ts';

const PROCESSES = 4;
const LOOPS = 4;
// Some more than a minute, so that several rolling minutes fit.
const SECONDS = 68;
const PROVIDER = { requestsPerMinute: 1_500, tokensPerMinute: 600_000 };
const TOKENS = { min: 400, max: 800 };
// The least that an answer uses. What it uses beyond that is known, and charged, only afterwards.
const ESTIMATE = TOKENS.min;
// The overrun of answers on their way is not charged yet; this part of the limit is left for it.
const MARGIN = 0.01;
// Small, since a strict limit runs at its rate less its burst.
const BURST_SHARE = 0.02;

const tokens = PROVIDER.tokensPerMinute * (1 - MARGIN);
const limits: LimitsOptions = {
  requests: perMinute(PROVIDER.requestsPerMinute, { strict: true }),
  tokens: perMinute(tokens, { strict: true, burst: Math.floor(tokens * BURST_SHARE) }),
};

export const llm: ProveCase = {
  name: 'llm',
  about: `a language model with ${PROVIDER.requestsPerMinute} requests and ${PROVIDER.tokensPerMinute} tokens a minute, known after the answer`,

  async run(stage) {
    const { signal, redisUrl, children, name, say } = stage;
    const service = await orAbort(signal, Service.start(children, PROVIDER));
    const fleet = new Fleet(
      children,
      'caller',
      flags({
        ...{ redis: redisUrl, service: service.url, governor: name, limits },
        ...{ kind: 'complete', loops: LOOPS, tokens: `${TOKENS.min}-${TOKENS.max}`, estimate: ESTIMATE },
      }),
    );
    await orAbort(signal, fleet.start(PROCESSES));
    const { epochMs } = await service.completions();
    const fromUs = (Date.now() - epochMs) * 1000;
    fleet.go();
    for (let passed = 0; passed < SECONDS; passed++) {
      if (passed % 10 === 0) say(`${passed} of ${SECONDS} s`);
      await pause(signal, 1_000);
    }
    const toUs = (Date.now() - epochMs) * 1000;
    const { completions } = await service.completions();
    await orAbort(signal, fleet.stop());

    const figures = minuteFigures(completions, { fromUs, toUs, ...PROVIDER });
    return {
      figures,
      demands: [
        atMost('tokens in the fullest minute, of the limit', figures.mostTokensShare, 1, '%'),
        atMost('requests in the fullest minute, of the limit', figures.mostRequestsShare, 1, '%'),
        atLeast('tokens in the emptiest minute, of the limit', figures.leastTokensShare, 0.95, '%'),
        exactly('requests answered 429', figures.refused, 0),
      ],
    };
  },
};

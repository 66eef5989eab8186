import type { Reporter, TestModule } from 'vitest/node';

/** Tells at the end of a run which tests needed a second try, so that none of them goes bad unseen. */
export default class TriedAgain implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const names = modules.flatMap(({ children, relativeModuleId }) =>
      [...children.allTests()]
        .filter((test) => (test.diagnostic()?.retryCount ?? 0) > 0)
        .map((test) => `${relativeModuleId} > ${test.fullName}`),
    );
    const list = names.length > 0 ? `: ${names.join('; ')}` : '';
    console.log(
      `\n${names.length} wall-clock ${names.length === 1 ? 'test was' : 'tests were'} tried again${list}`,
    );
  }
}

/** `{ serviceMs: 5, heed: true }` as a command line: `--service-ms 5 --heed`. Objects become JSON. */
export function flags(options: object): string[] {
  return Object.entries(options).flatMap(([name, value]) => {
    if (value === undefined || value === false) return [];
    const flag = `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    if (value === true) return [flag];
    return [flag, typeof value === 'object' ? JSON.stringify(value) : `${value}`];
  });
}

/** `{ serviceMs: 5, heed: true }` as the command line of a process of ours: `--service-ms 5 --heed`. Objects go as JSON. */
export function flags(options: object): string[] {
  return Object.entries(options).flatMap(([name, value]) => {
    if (value === undefined || value === false) return [];
    const flag = `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    if (value === true) return [flag];
    return [flag, typeof value === 'object' ? JSON.stringify(value) : `${value}`];
  });
}

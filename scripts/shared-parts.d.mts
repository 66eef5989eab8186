/** The parts of lua/includes that are made of TypeScript: each one's text, by name. */
export declare const sharedParts: () => Record<string, string>;

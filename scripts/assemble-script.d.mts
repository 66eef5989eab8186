export interface AssembledScript {
  name: string;
  /** Of `source`, as Redis computes it. */
  sha1: string;
  source: string;
}

export interface AssembleOptions {
  /** Other text for an include: by name, the path of a .lua file or Lua source. */
  replaceIncludes?: Record<string, string>;
  /** Where the scripts lie. Default: this project's `lua`. */
  directory?: string;
}

/** This project's `lua`. */
export declare const luaDirectory: string;

/**
 * Assembles `lua/<name>.lua` as it is sent to Redis.
 *
 * Each line `--- @include "part"` becomes the text of `lua/includes/part.lua`, the first time it is met.
 * Whole-line comments and blank lines are left out; strings are never touched.
 *
 * @throws Error if a file is missing, includes go in a circle, or an include to replace is not used.
 *
 * @example
 * // The script that ships, but reading its time from an argument.
 * assemble('decide', { replaceIncludes: { clock: "local function now_us() return tonumber(ARGV[1]) end" } });
 */
export declare function assemble(name: string, options?: AssembleOptions): AssembledScript;

export interface AssembledScript {
  name: string;
  /** Of `source`, as Redis computes it. */
  sha1: string;
  source: string;
}

export interface AssembleOptions {
  /** Other text for a part: by name, the path of a .lua file or Lua source. */
  replaceIncludes?: Record<string, string>;
  /** The kinds of limits that the script can decide. Default: all. A call with another kind fails. */
  kinds?: readonly string[];
  /** Where the scripts lie. Default: this project's `lua`. */
  directory?: string;
}

/** This project's `lua`. */
export declare const luaDirectory: string;

/**
 * Assembles `lua/<name>.lua` as it is sent to Redis.
 *
 * A file of `lua/includes` is a part: a module as in plain Lua, which begins with what it requires and ends with what it
 * returns. The script begins with all parts that it, or one of them, requires by a name in the text; each is made when
 * `require` first asks for it, once a call. Whole-line comments and blank lines are left out; strings are never touched.
 *
 * @throws Error if a file is missing, parts require each other as they are made, or a part to replace is not used.
 *
 * @example
 * // The script that ships, but reading its time from an argument, and for rates alone.
 * assemble('decide', {
 *   kinds: ['rate'],
 *   replaceIncludes: { clock: "return { nowUs = function() return tonumber(ARGV[3]) end, expireAfterMs = function() end }" },
 * });
 */
export declare function assemble(name: string, options?: AssembleOptions): AssembledScript;

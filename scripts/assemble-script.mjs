import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const luaDirectory = fileURLToPath(new URL('../lua', import.meta.url));

// A Lua lexer as far as it matters here: comments and strings, long or short; anything else is one character.
const lexeme =
  /--\[(?<c>=*)\[[\s\S]*?\]\k<c>\]|--[^\n]*|\[(?<s>=*)\[[\s\S]*?\]\k<s>\]|"(?:\\[\s\S]|[^"\\\n])*"|'(?:\\[\s\S]|[^'\\\n])*'|[\s\S]/g;

const requireText = `local loaded, parts = {}
local function require(name)
  local part = loaded[name]
  if part == nil then
    part = parts[name]()
    loaded[name] = part
  end
  return part
end`;

// Documented, with types, in assemble-script.d.mts.
export function assemble(name, options = {}) {
  const { directory = luaDirectory, replaceIncludes = {}, kinds } = options;
  const parts = new Map();

  const add = (part, chain) => {
    if (parts.has(part)) return;
    const isReplaced = part in replaceIncludes;
    const file = join(directory, 'includes', `${part}.lua`);
    const text = inlined(
      shipped(isReplaced ? sourceOf(replaceIncludes[part]) : read(file, chain)),
      directory,
    );
    parts.set(part, text);
    follow(text, part, [...chain, part]);
  };

  const follow = (text, from, chain) => {
    for (const { part, isEager } of requiredBy(text)) {
      if (isEager && chain.includes(part))
        throw new Error(`lua/${name}.lua: parts require each other: ${[...chain, part].join(' > ')}`);
      if (!isLeftOut(part, from, kinds)) add(part, isEager ? chain : [name]);
    }
  };

  const main = inlined(shipped(read(join(directory, `${name}.lua`), [])), directory);
  follow(main, name, [name]);
  for (const part of Object.keys(replaceIncludes)) {
    if (!parts.has(part))
      throw new Error(`lua/${name}.lua: expected a part "${part}" to replace, found none`);
  }
  const source = `${[...head(parts), ...main].join('\n')}\n`;
  return { name, sha1: createHash('sha1').update(source).digest('hex'), source };
}

/** All parts as functions that make them, in one table, and `require`. */
function head(parts) {
  if (parts.size === 0) return [];
  const made = [...parts].flatMap(([part, text]) => [`['${part}'] = function()`, ...text, 'end,']);
  return [requireText, 'parts = {', ...made, '}'];
}

/** A kind is reached through its number, and left out of a script that is not to have it. */
function isLeftOut(part, from, kinds) {
  const kind = /^buckets\/([^/]+)\/index$/.exec(part)?.[1];
  return kind !== undefined && from === 'protocol' && kinds !== undefined && !kinds.includes(kind);
}

/** Numbers of a part that holds nothing else stand in place of their names, so that no call makes a table of them. */
function inlined(lines, directory) {
  const tables = new Map();
  const numberIn = (table, name) => {
    if (!table.has(name)) throw new Error(`expected one of ${[...table.keys()].join(', ')}, got ${name}`);
    return table.get(name);
  };
  return lines.flatMap((line) => {
    const [, alias, part] = /^local (\w+) = require '([^']+)'$/.exec(line) ?? [];
    const table = part && numbersOf(join(directory, 'includes', `${part}.lua`));
    if (table) tables.set(alias, table);
    return table
      ? []
      : line.replace(/(?<![\w.])(\w+)\.(\w+)/g, (text, owner, name) =>
          tables.has(owner) ? numberIn(tables.get(owner), name) : text,
        );
  });
}

/** The names and numbers of a part that is a table of numbers, as the build writes them; undefined for another part. */
function numbersOf(file) {
  if (!existsSync(file)) return undefined;
  const [first, ...rest] = shipped(read(file, []));
  const entries = rest.slice(0, -1).map((line) => /^ {2}(\w+) = (\d+),$/.exec(line)?.slice(1));
  return first === 'return {' && entries.every(Boolean) ? new Map(entries) : undefined;
}

/** What a text requires: eagerly, when it is made itself, or inside a function, when that is called. */
function requiredBy(lines) {
  return lines.flatMap((line) =>
    [...line.matchAll(/\brequire\s*\(?\s*'([^']+)'/g)].map(([, part]) => ({
      part,
      isEager: !line.startsWith(' '),
    })),
  );
}

/** The lines to ship: without blank lines and whole-line comments. */
function shipped(source) {
  const lines = [];
  let line = '';
  const end = () => {
    if (line.trim() !== '') lines.push(line);
    line = '';
  };
  for (const { 0: text, index } of source.matchAll(lexeme)) {
    const isComment = text.startsWith('--') && line.trim() === '' && endsItsLine(source, index + text.length);
    if (text === '\n') end();
    else if (isComment) line = '';
    // A comment after code stays where it is; a string keeps its own line breaks and dashes.
    else line += text;
  }
  end();
  return lines;
}

function endsItsLine(source, end) {
  const newline = source.indexOf('\n', end);
  return source.slice(end, newline === -1 ? source.length : newline).trim() === '';
}

function sourceOf(pathOrSource) {
  const isPath = !pathOrSource.includes('\n') && pathOrSource.endsWith('.lua');
  return isPath ? read(pathOrSource, []) : pathOrSource;
}

function read(file, chain) {
  if (!existsSync(file)) {
    throw new Error(`expected a file ${file}${chain.length > 0 ? `, required by ${chain.join(' > ')}` : ''}`);
  }
  // The hash must not depend on how a checkout writes its line ends.
  return readFileSync(file, 'utf8').replaceAll('\r\n', '\n');
}

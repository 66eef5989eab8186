import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const luaDirectory = fileURLToPath(new URL('../lua', import.meta.url));

// A Lua lexer as far as it matters here: comments and strings, long or short; anything else is one character.
const lexeme =
  /--\[(?<c>=*)\[[\s\S]*?\]\k<c>\]|--[^\n]*|\[(?<s>=*)\[[\s\S]*?\]\k<s>\]|"(?:\\[\s\S]|[^"\\\n])*"|'(?:\\[\s\S]|[^'\\\n])*'|[\s\S]/g;

// Documented, with types, in assemble-script.d.mts.
export function assemble(name, options = {}) {
  const directory = options.directory ?? luaDirectory;
  const replaced = options.replaceIncludes ?? {};
  const used = new Set();

  const include = (part, chain) => {
    if (chain.includes(part)) {
      throw new Error(`lua/${name}.lua: includes go in a circle: ${[...chain, part].join(' > ')}`);
    }
    if (used.has(part)) return [];
    used.add(part);
    const source = part in replaced ? sourceOf(replaced[part]) : read(includeFile(directory, part), chain);
    return shipped(source, (next) => include(next, [...chain, part]));
  };

  const lines = shipped(read(join(directory, `${name}.lua`), []), (part) => include(part, [name]));
  for (const part of Object.keys(replaced)) {
    if (!used.has(part))
      throw new Error(`lua/${name}.lua: expected an include "${part}" to replace, found none`);
  }
  const source = `${lines.join('\n')}\n`;
  return { name, sha1: createHash('sha1').update(source).digest('hex'), source };
}

/** The lines to ship: without blank lines and whole-line comments, each include directive replaced by its part. */
function shipped(source, include) {
  const lines = [];
  let line = '';
  for (const match of source.matchAll(lexeme)) {
    const [text] = match;
    if (text === '\n') {
      if (line.trim() !== '') lines.push(line);
      line = '';
    } else if (
      text.startsWith('--') &&
      line.trim() === '' &&
      endsItsLine(source, match.index + text.length)
    ) {
      const part = includedBy(text);
      if (part !== undefined) lines.push(...include(part));
      line = '';
    } else {
      // A comment after code stays where it is; a string keeps its own line breaks and dashes.
      line += text;
    }
  }
  if (line.trim() !== '') lines.push(line);
  return lines;
}

function endsItsLine(source, end) {
  const newline = source.indexOf('\n', end);
  return source.slice(end, newline === -1 ? source.length : newline).trim() === '';
}

function includedBy(comment) {
  if (!/^---?\s*@include\b/.test(comment)) return undefined;
  const part = /^--- @include "([^"]+)"\s*$/.exec(comment)?.[1];
  if (part === undefined) throw new Error(`expected --- @include "name", got: ${comment.trim()}`);
  return part;
}

function includeFile(directory, part) {
  return join(directory, 'includes', `${part}.lua`);
}

function sourceOf(pathOrSource) {
  const isPath = !pathOrSource.includes('\n') && pathOrSource.endsWith('.lua');
  return isPath ? read(pathOrSource, []) : pathOrSource;
}

function read(file, chain) {
  if (!existsSync(file)) {
    throw new Error(`expected a file ${file}${chain.length > 0 ? `, included by ${chain.join(' > ')}` : ''}`);
  }
  // The hash must not depend on how a checkout writes its line ends.
  return readFileSync(file, 'utf8').replaceAll('\r\n', '\n');
}

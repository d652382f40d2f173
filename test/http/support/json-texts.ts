import type { Random } from '../../support/random.ts'

/** JSON, most of it an object that looks like a plant, or the same with something put in or taken out. */
export function jsonText(random: Random): string {
  const json = spaced(random, random(5) === 0 ? value(random, 0) : object(random, 0))
  const at = random(json.length)
  const rest = json.slice(at + random(3))
  return one(random, [
    () => json,
    () => json.slice(0, at) + rest,
    () => json.slice(0, at) + one(random, NOISE) + rest,
  ])()
}

function one<T>(random: Random, choices: readonly T[]): T {
  const choice = choices[random(choices.length)]
  if (choice === undefined) throw new TypeError('there is nothing to choose from')
  return choice
}
const several = (random: Random, most: number, make: () => string) => Array.from({ length: random(most + 1) }, make)

const SPACES = ['', '', '', ' ', '\t', '\n', '\r\n', '  '] as const
const CHARACTERS = ['a', 'Z', '\u00fc', '\u4e2d', '🌱', '\u2028', '[', '{', ':', ',', '1', '\ufeff'] as const
const ESCAPES = ['\\"', '\\\\', '\\/', '\\b', '\\n', '\\u0000', '\\u0041', '\\uD83C', '\\u00fF'] as const
const NUMBERS = ['0', '-0', '7', '-12', '9007199254740993', '1.50', '0.1e2', '1E-5', '-3e+07', '1e400'] as const
const WORDS = ['true', 'false', 'null'] as const
/** Names of members, and what makes a value that mostly fits. */
const MEMBERS = [
  ['"id"', (random: Random) => one(random, NUMBERS)],
  ['"i\\u0064"', (random: Random) => one(random, NUMBERS)],
  ['"name"', (random: Random) => string(random)],
  ['"\\u006eame"', (random: Random) => string(random)],
  ['"tag"', (random: Random) => string(random)],
  ['"x"', (random: Random) => value(random, DEPTH_MAX)],
  ['"__proto__"', (random: Random) => value(random, 1)],
] as const
/** Levels within which arrays and objects are nested. */
const DEPTH_MAX = 4
/** What a mutation puts in. */
const NOISE = [...'{}[]",:\\ue+-.0 1tfnE\t\n\0\u001f\u00a0\ufeff']

const string = (random: Random) =>
  `"${several(random, 4, () => one<string>(random, random(3) === 0 ? ESCAPES : CHARACTERS)).join('')}"`

function value(random: Random, depth: number): string {
  const kind = random(depth > DEPTH_MAX ? 3 : 6)
  if (kind === 0) return one(random, NUMBERS)
  if (kind === 1) return string(random)
  if (kind === 2) return one(random, WORDS)
  return kind === 3 ? array(random, depth + 1) : object(random, depth + 1)
}

const spaced = (random: Random, text: string) => one(random, SPACES) + text + one(random, SPACES)

const array = (random: Random, depth: number): string =>
  `[${several(random, 3, () => spaced(random, value(random, depth))).join(',') || one(random, SPACES)}]`

function object(random: Random, depth: number): string {
  const member = () => {
    const [name, fitting] = one(random, MEMBERS)
    const written = random(8) === 0 ? string(random) : name
    return `${spaced(random, written)}:${spaced(random, random(6) === 0 ? value(random, depth) : fitting(random))}`
  }
  return `{${several(random, 5, member).join(',') || one(random, SPACES)}}`
}

import { join } from 'node:path'

/** The oldest browsers in which the page runs, as the documentation says. */
const OLDEST = { safari: '16.4', chrome: '111', firefox: '121' } as const

/** What a browser says of a feature, first of its latest versions. */
interface Support {
  readonly version_added: string | false
  readonly version_removed?: string
  readonly flags?: unknown
}
interface Known {
  readonly __compat?: { readonly support: Readonly<Record<string, Support | readonly Support[] | undefined>> }
}
type Feature = Known & { readonly [name: string]: Feature | undefined }

const FILE = join(import.meta.dir, '../../../node_modules/@mdn/browser-compat-data/data.json')
const { javascript, api, css }: Readonly<Record<'javascript' | 'api' | 'css', Feature>> = await Bun.file(FILE).json()

/** A version as a number, so that 9.1 is before 16.4. One that is not out yet is after all. */
function orderOf(version: string): number {
  const [, major, minor = '0'] = /^≤?(\d+)(?:\.(\d+))?/.exec(version) ?? []
  return major === undefined ? Number.POSITIVE_INFINITY : 1000 * Number(major) + Number(minor)
}

/** Whether one of the oldest browsers lacks a feature, as `@mdn/browser-compat-data` says. Nobody knows it of others. */
const isTooNew = (feature: Feature | undefined): boolean =>
  Object.entries(OLDEST).some(([browser, oldest]) => {
    const support = feature?.__compat?.support[browser]
    if (support === undefined) return false
    return ![support]
      .flat()
      .some(
        ({ version_added: added, version_removed: removed, flags }) =>
          added && !removed && !flags && orderOf(added) <= orderOf(oldest),
      )
  })

const membersOf = (feature: Feature | undefined) =>
  Object.entries(feature ?? {}).filter(([name]) => name !== '__compat')

/** The names of what scripts must not use: a global, or an object and its member. */
export const TOO_NEW: readonly (readonly [object: string, member?: string])[] = [javascript.builtins, api]
  .flatMap(membersOf)
  .flatMap(([object, feature]) => [
    ...(isTooNew(feature) ? [[object] as const] : []),
    ...membersOf(feature).flatMap(([member, each]) => (isTooNew(each) ? [[object, member] as const] : [])),
  ])

/** A script that takes them away. An object may have a method of the same name as its class. */
export const WITHOUT_TOO_NEW = `for (const [object, member] of ${JSON.stringify(TOO_NEW)}) {
  const name = member?.startsWith('@@') ? Symbol[member.slice(2)] : (member ?? object).replace('_static', '')
  const prototype = member?.endsWith('_static') ? undefined : globalThis[object]?.prototype
  for (const place of member === undefined ? [globalThis] : [prototype, globalThis[object]])
    if (place) delete place[name]
}`

/** All features below one, by their last names. */
const below = (feature: Feature | undefined): readonly (readonly [name: string, Feature | undefined])[] =>
  membersOf(feature).flatMap(([name, each]) => [[name, each] as const, ...below(each)])

/** What a style has that is too new: at-rules, features of media, properties, their keywords, selectors and functions. */
export function tooNewIn(style: string): readonly string[] {
  const names = (pattern: RegExp, text = style) => [...text.matchAll(pattern)].map(([, name = '']) => name)
  const rules = css['at-rules']
  const types = new Map(below(css.types))
  const declarations = [...style.matchAll(/([{;])([a-z][a-z-]*):([^;{}]*)/g)]
  const found = [
    ...names(/@([a-z][a-z-]*)/g).map((name) => [`@${name}`, rules?.[name]] as const),
    ...names(/@media([^{]*)/g).flatMap((query) =>
      names(/\(([a-z-]+)/g, query).map((name) => [`(${name})`, rules?.media?.[name]] as const),
    ),
    ...names(/:([a-z][a-z-]+)/g, style.replace(/\{[^{}]*\}/g, '')).map(
      (name) => [`:${name}`, css.selectors?.[name]] as const,
    ),
    ...declarations.flatMap(([, , name = '', value = '']) => {
      const property = css.properties?.[name]
      return [
        [name, property] as const,
        ...names(/([a-z][a-z-]*)/g, value).map((word) => [`${name}: ${word}`, property?.[word]] as const),
        ...names(/([a-z][a-z-]*)\(/g, value).map((word) => [`${word}()`, types.get(word)] as const),
        ...(/["'] *\/ *["']/.test(value) ? [[`${name}: with words`, property?.alt_text] as const] : []),
      ]
    }),
  ]
  return [...new Set(found.filter(([, feature]) => isTooNew(feature)).map(([name]) => name))].sort()
}

import { dirname, join, relative, resolve } from 'node:path'
import { Glob } from 'bun'
import packageJson from '../../package.json'
import { ERRORS, statusOf } from '../../src/http/answers.ts'

/** The folder of the repository. */
export const PROJECT = resolve(import.meta.dir, '../..')

/** Pages that have another name on the site than in the repository. */
const NAMES: Readonly<Record<string, string>> = {
  'README.md': 'index.md',
  'CONTRIBUTING.md': 'contributing.md',
  'SECURITY.md': 'security.md',
  'CHANGELOG.md': 'changelog.md',
  'docs/README.md': 'pages.md',
  'docs/site/README.md': 'site.md',
}

/** The name of each page on the site, by its path in the repository. */
export function pageNames(): ReadonlyMap<string, string> {
  const docs = [...new Glob('docs/**/*.md').scanSync(PROJECT)].filter((page) => !page.includes('node_modules')).sort()
  const pages = [...Object.keys(NAMES).filter((page) => !page.startsWith('docs/')), ...docs]
  return new Map(pages.map((page) => [page, NAMES[page] ?? page.replace('docs/', '')]))
}

/** The pictures that pages show. They keep their paths. */
export const pictures = (): readonly string[] =>
  ['docs/pictures/*.*', 'test/bench/*.svg'].flatMap((pattern) => [...new Glob(pattern).scanSync(PROJECT)].sort())

/**
 * A page as the site shows it: links between pages have the names of the site, and `inRepository` says where other files are. All
 * keep their anchors.
 */
export function forSite(page: string, text: string, inRepository: (path: string) => string): string {
  const names = pageNames()
  const from = dirname(names.get(page) ?? page)
  const moved = (link: string): string => {
    if (/^(?:[a-z]+:|#)/.test(link)) return link
    const [file = ''] = link.split('#')
    const anchor = link.slice(file.length)
    const target = relative('/', resolve('/', dirname(page), file))
    const name = names.get(target)
    if (name === undefined && pictures().includes(target)) return relative(from, target)
    return (name === undefined ? inRepository(target) : `/${name}`) + anchor
  }
  return outsideCode(text, (prose) =>
    prose
      .replace(/\]\(([^)\s]+)\)/g, (_, link: string) => `](${moved(link)})`)
      .replace(/(?<= (?:src|srcset)=")([^"]+)(?=")/g, (link) => asRelative(moved(link))),
  )
}

const asRelative = (link: string): string => (/^(?:[a-z]+:|\.)/.test(link) ? link : `./${link}`)

const outsideCode = (text: string, change: (prose: string) => string): string =>
  text
    .split(/(^ *```[\s\S]*?^ *```$)/m)
    .map((part, index) => (index % 2 === 0 ? change(part) : part))
    .join('')

/** A group of the sidebar. */
export interface Group {
  readonly text: string
  readonly items: readonly { readonly text: string; readonly link: string }[]
}

/** The sidebar, which is the list of all pages in docs/README.md. */
export function sidebar(list: string): readonly Group[] {
  const groups = list.split(/^## /m).slice(1)
  return groups.map((group) => {
    const [text = ''] = group.split('\n')
    const items = [...group.matchAll(/^- \[(.+?)\]\((.+?)\.md\)/gm)].map(([, title = '', link]) => ({
      text: title,
      link: `/${link}`,
    }))
    return { text, items }
  })
}

/** `llms.txt` of https://llmstxt.org: what this is, and the list of all pages, which is that of docs/README.md. */
export const listForPrograms = (list: string): string => `# Plant Store

> ${packageJson.description}. Start with the [overview](/index.md). The API is in the [OpenAPI document](/openapi.json).

${list.slice(list.indexOf('## '))}`

const TROUBLESHOOTING = 'docs/how-to/troubleshoot.md'

/** The pages of the error codes by their paths on the site: the table of the code, and the remedies of troubleshooting. */
export function errorPages(
  troubleshooting: string,
  inRepository: (path: string) => string,
): ReadonlyMap<string, string> {
  const linked = forSite(TROUBLESHOOTING, troubleshooting.replaceAll('](#', '](troubleshoot.md#'), inRepository)
  const remedies = new Map(
    [...linked.matchAll(/^\| ([45]\d{4}) \| (.+?) \| (.+) \|$/gm)].map(([, code = '', reason, remedy]) => [
      code,
      `The usual reason: ${reason}.\n\nWhat to do: ${remedy}.`,
    ]),
  )
  const kinds = Object.keys(ERRORS) as (keyof typeof ERRORS)[]
  const pages = kinds.map((kind) => {
    const { code, when, message } = ERRORS[kind]
    const remedy = remedies.get(String(code))
    if (remedy === undefined) throw new Error(`${TROUBLESHOOTING} says nothing about ${code}`)
    const { headers = {} }: { code: number; headers?: Readonly<Record<string, string>> } = ERRORS[kind]
    const head = [
      `HTTP/1.1 ${statusOf(kind)}`,
      'Content-Type: application/json',
      ...Object.entries(headers).map((pair) => pair.join(': ')),
    ]
    const text = `# Error ${code}

> ${message}

The status is ${statusOf(kind)}. The server answers this when ${when}.

${remedy}

## Example

\`\`\`http
${head.join('\n')}

${JSON.stringify({ error: code, message })}
\`\`\`

The \`message\` can be more precise than this one. Metrics and the log have the reason \`${kind}\`. In the log, the line
whose \`requestId\` is the \`X-Request-Id\` of the answer says more.
`
    return [join('errors', `${code}.md`), text] as const
  })
  const rows = kinds.map(
    (kind) => `| [${ERRORS[kind].code}](/errors/${ERRORS[kind].code}.md) | ${ERRORS[kind].message} |`,
  )
  const index = `# Error codes\n\n| \`error\` | \`message\` |\n|---|---|\n${rows.join('\n')}\n`
  return new Map([...pages, [join('errors', 'index.md'), index]])
}

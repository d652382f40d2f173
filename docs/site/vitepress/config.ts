import { readFileSync } from 'node:fs'
import { slug } from 'github-slugger'
import { defineConfig } from 'vitepress'

/** What build.ts knows of the pages and of the place of the site. */
const { base, repository, ref, versions, origins, sidebar } = JSON.parse(
  readFileSync(new URL('settings.json', import.meta.url), 'utf8'),
)
/** Each version but `main` has a folder in the folder of `main`. VitePress puts the base before the link. */
const linkTo = (version: string): string => `/${ref === 'main' ? '' : '../'}${version === 'main' ? '' : `${version}/`}`

/** Words of questions that say nothing about the subject. */
const processTerm = (term: string) =>
  /^(?:a|an|and|are|by|can|do|does|for|have|how|i|in|is|it|itself|me|my|of|on|or|the|this|to|what|which|with|you)$/i.test(
    term,
  )
    ? null
    : term.toLowerCase()

/** Headings count most, and old changes least. Words of a few letters must be spelt right. */
const searchOptions = {
  fuzzy: (term: string) => (term.length > 5 ? 0.15 : false),
  boost: { title: 4, titles: 2, text: 1 },
  bm25: { k: 1.2, b: 0.8, d: 0.3 },
  boostDocument: (page: string) => (page.includes('/changelog') ? 0.2 : page.includes('/errors/') ? 2.5 : 1),
}

export default defineConfig({
  base,
  lang: 'en',
  title: 'Plant Store',
  description: 'An HTTP/JSON service that stores plants, as one executable',
  head: [['link', { rel: 'icon', href: `${base}icon.svg` }]],
  markdown: {
    languageAlias: { caddyfile: 'nginx', haproxy: 'ini' },
    // The same anchors as on the forge, so that one link works in both places.
    anchor: { slugify: slug },
    config: (md) => {
      const { fence } = md.renderer.rules
      md.renderer.rules.fence = (...args) => {
        const [tokens, index] = args
        const { info, content } = tokens[index] as { info: string; content: string }
        return info === 'mermaid' ? `<Mermaid code="${encodeURIComponent(content)}" />` : (fence?.(...args) ?? '')
      }
    },
  },
  // The pages need no other host: no fonts, no search service.
  themeConfig: {
    search: { provider: 'local', options: { miniSearch: { options: { processTerm }, searchOptions } } },
    outline: [2, 3],
    nav: [
      { text: 'Start', link: '/tutorial' },
      { text: 'Pages', link: '/pages' },
      { text: 'API', link: '/openapi.html', target: '_self' },
      { text: 'Errors', link: '/errors/' },
      { text: ref, items: versions.map((text: string) => ({ text, link: linkTo(text), target: '_self' })) },
    ],
    sidebar: [
      {
        text: 'Start',
        items: [
          { text: 'Plant Store', link: '/' },
          { text: 'Tutorial', link: '/tutorial' },
        ],
      },
      ...sidebar,
      {
        text: 'Project',
        items: [
          { text: 'Error codes', link: '/errors/' },
          { text: 'Changes', link: '/changelog' },
          { text: 'Contributing', link: '/contributing' },
          { text: 'Report a weakness', link: '/security' },
        ],
      },
    ],
    ...(repository !== '' && {
      socialLinks: [{ icon: 'github' as const, link: repository }],
      editLink: {
        text: ref === 'main' ? 'Edit this page' : 'Source of this page',
        pattern: `${repository}/${ref === 'main' ? 'edit' : 'blob'}/${ref}/:path`,
      },
    }),
  },
  transformHead: ({ page }) =>
    origins[page] === undefined ? [] : [['link', { rel: 'alternate', type: 'text/markdown', href: `${base}${page}` }]],
  transformPageData: (page) => ({ filePath: origins[page.relativePath] ?? page.relativePath }),
})

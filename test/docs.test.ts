import { expect, test } from 'bun:test'
import { resolve } from 'node:path'
import { README, withGeneratedParts } from './support/readme.ts'

test('the tables of codes, options and commands in the README are those of the code', async () => {
  const readme = await Bun.file(README).text()

  expect(readme).toBe(await withGeneratedParts(readme))
})

test('the README links only to existing files and headings', async () => {
  const readme = await Bun.file(README).text()
  const headings = [...readme.matchAll(/^#+ (.+)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  )
  const links = [...readme.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target)

  for (const link of links) {
    if (link.startsWith('#')) expect(headings).toContain(link.slice(1))
    else if (!link.startsWith('https://')) expect(await Bun.file(resolve(README, '..', link)).exists()).toBe(true)
  }
})

import { describe, expect, test } from 'bun:test'
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { EXECUTABLE } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { advisories } from './audit-advisories.ts'
import { ALLOWED_IN_RUNTIME, ALLOWED_INSIDE, ALLOWED_TO_DEVELOP, licenseProblems } from './audit-licenses.ts'
import { lockProblems } from './audit-lock.ts'
import { billProblems } from './audit-sbom.ts'
import { partsInside } from './inside.ts'
import { LICENSES_FILE, thirdPartyLicenses } from './licenses.ts'
import { PROJECT, runIn } from './run.ts'
import { runtime } from './runtime.ts'
import { sbom } from './sbom.ts'

const parts = await partsInside()

/** The project's package.json and lock file in a folder of their own, with something replaced in one of them. */
function changed(file: 'package.json' | 'bun.lock', before: RegExp, after: string) {
  const folder = makeFolder()
  for (const name of ['package.json', 'bun.lock', 'bunfig.toml']) cpSync(join(PROJECT, name), join(folder.path, name))
  return {
    async problems() {
      const text = await Bun.file(join(folder.path, file)).text()
      expect(text).toMatch(before)
      await Bun.write(join(folder.path, file), text.replace(before, after))
      return lockProblems(folder.path)
    },
    [Symbol.dispose]: folder[Symbol.dispose],
  }
}

test('the licences in the source are those of what is inside', async () => {
  expect(await Bun.file(LICENSES_FILE).text()).toBe(await thirdPartyLicenses(parts))
})

test('what is inside has the packages that the page was bundled of, in the versions that comments in it say', async () => {
  const page = await Bun.file(join(PROJECT, 'node_modules/@scalar/api-reference/dist/browser/standalone.js')).text()
  const said = [...page.matchAll(/^\s*\* ((?:@[\w-]+\/)?[\w-]+) v(\d+\.\d+\.\d+)$/gm)].map(([, ...nameAndVersion]) =>
    nameAndVersion.join('@'),
  )

  expect(said).toContain('vue@3.5.40')
  expect(parts.map(({ name, version }) => `${name}@${version}`)).toEqual(expect.arrayContaining(said))
})

describe('bun run audit', () => {
  test('finds nothing wrong with what is committed', async () => {
    const { stdout, exitCode } = await runIn(['bun', 'run', 'audit'])

    const titles = stdout.split('\n').filter((line) => /^(?:lock|licences|bill|advisories)/.test(line))
    expect(exitCode).toBe(0)
    expect(titles).toEqual([
      'lock file: nothing wrong',
      expect.stringMatching(
        /^licences of \d+ packages and Bun, which are inside, and of \d+ installed: nothing wrong$/,
      ),
      'bill of materials: nothing wrong',
      expect.stringMatching(/^advisories: (?:nothing wrong|none were looked for, since nobody could be asked: .+)$/),
    ])
  })

  test.each([
    [
      'package.json',
      /"pino": "[\d.]+"/,
      '"pino": "^10.0.0"',
      'pino is asked for as ^10.0.0, and not in one exact version',
    ],
    ['package.json', /"pino": "[\d.]+"/, '"pino": "9.9.0"', 'error: lockfile had changes, but lockfile is frozen'],
    ['bun.lock', /("pino": \[.*)"sha512-[^"]*"\]/, '$1""]', 'pino has no sum in bun.lock'],
  ] as const)('refuses a %s in which %p is %p', async (file, before, after, problem) => {
    using copy = changed(file, before, after)

    expect(await copy.problems()).toContain(problem)
  })

  test('refuses a bill of materials that lacks a package, or lists another', async () => {
    const executable = EXECUTABLE || 'none'
    const bill = async (listed: typeof parts) => billProblems(await sbom(listed, '1.0.0', new Date(0)), executable)
    const [first, ...others] = parts
    if (first === undefined) throw new Error('nothing is inside')
    const name = `${first.name}@${first.version}`

    expect(await bill(parts)).toEqual([])
    expect(await bill(others)).toEqual([`${name} is inside, and not listed`])
    expect(await bill([...parts, { ...first, version: '0.0.0' }])).toEqual([
      `${first.name}@0.0.0 is listed, and not inside`,
    ])
  })

  test.each([
    ['GPL-3.0-only', ALLOWED_INSIDE],
    ['LGPL-2.1-only', ALLOWED_INSIDE],
    ['Unlicense', ALLOWED_INSIDE],
    ['MIT AND GPL-2.0-only', ALLOWED_IN_RUNTIME],
    ['AGPL-3.0-only', ALLOWED_TO_DEVELOP],
    ['SEE LICENSE IN LICENSE.md', ALLOWED_TO_DEVELOP],
    ['', ALLOWED_TO_DEVELOP],
  ])('refuses the licence %p', (license, allowed) => {
    const manifest = { name: 'example', version: '1.0.0', license }

    expect(licenseProblems([manifest], allowed)).toEqual([`example 1.0.0 is under ${license || 'no licence'}`])
    expect(licenseProblems([{ ...manifest, license: `(${license || 'GPL-3.0-only'} OR MIT)` }], allowed)).toHaveLength(
      license.startsWith('SEE') ? 1 : 0,
    )
  })

  test('takes the licences of the runtime for what the runtime says they are', async () => {
    const { statement, licenses } = await runtime()

    expect(statement).toContain('JavaScriptCore')
    expect(licenses).toContain('LGPL-2.0-only')
    expect(ALLOWED_IN_RUNTIME).toEqual(expect.arrayContaining([...licenses]))
  })

  test.each([
    ['a registry that knows of none', '{}', { unreachable: undefined, problems: [] }],
    [
      'a registry that knows of one',
      '{"elysia":[{"id":1,"url":"https://example.org/1","title":"All is lost","severity":"high","vulnerable_versions":"<99.0.0"}]}',
      { unreachable: undefined, problems: expect.arrayContaining([expect.stringContaining('high: All is lost')]) },
    ],
    ['no registry', undefined, { unreachable: expect.stringContaining('ConnectionRefused'), problems: [] }],
  ])('says of vulnerabilities what it hears from %s', async (_, answer, expected) => {
    await using registry = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: () => new Response(answer, { headers: { 'content-type': 'application/json' } }),
    })
    if (answer === undefined) await registry.stop(true)

    expect(await advisories(['env', `BUN_CONFIG_REGISTRY=${registry.url}`, process.execPath])).toEqual(expected)
  })
})

import { describe, expect, test } from 'bun:test'
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { EXECUTABLE } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { ALLOWED_INSIDE, ALLOWED_TO_DEVELOP, advisories, billProblems, licenseProblems, lockProblems } from './audit.ts'
import { partsInside } from './bundled-packages.ts'
import { LICENSES_FILE, thirdPartyLicenses } from './licenses.ts'
import { PROJECT, runIn } from './run.ts'
import { sbom } from './sbom.ts'

const parts = await partsInside()

/** A copy of the project's package.json and lock file, with a replacement in one of them. */
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

test('third-party-licenses.txt has the licences of the bundled packages', async () => {
  expect(await Bun.file(LICENSES_FILE).text()).toBe(await thirdPartyLicenses(parts))
})

test('the bundled packages include those that the documentation page names in its comments', async () => {
  const page = await Bun.file(join(PROJECT, 'node_modules/@scalar/api-reference/dist/browser/standalone.js')).text()
  const named = [...page.matchAll(/^\s*\* ((?:@[\w-]+\/)?[\w-]+) v(\d+\.\d+\.\d+)$/gm)].map(([, ...nameAndVersion]) =>
    nameAndVersion.join('@'),
  )

  expect(named).toContain('vue@3.5.40')
  expect(parts.map(({ name, version }) => `${name}@${version}`)).toEqual(expect.arrayContaining(named))
})

describe('bun run audit', () => {
  test('finds no problems in this commit', async () => {
    const { stdout, exitCode } = await runIn(['bun', 'run', 'audit'])

    const titles = stdout.split('\n').filter((line) => /^(?:lock|licences|bill|advisories)/.test(line))
    expect(exitCode).toBe(0)
    expect(titles).toEqual([
      'lock file: nothing wrong',
      expect.stringMatching(/^licences of \d+ bundled and \d+ installed packages: nothing wrong$/),
      'bill of materials: nothing wrong',
      expect.stringMatching(
        /^advisories: (?:nothing wrong|not looked for, because the registry could not be asked: .+)$/,
      ),
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
  ] as const)('finds a problem in %s if %p is replaced by %p', async (file, before, after, problem) => {
    using copy = changed(file, before, after)

    expect(await copy.problems()).toContain(problem)
  })

  test('finds a package that the bill of materials lacks, and one that is not bundled', async () => {
    const executable = EXECUTABLE || 'none'
    const bill = async (listed: typeof parts) => billProblems(await sbom(listed, '1.0.0', new Date(0)), executable)
    const [first, ...others] = parts
    if (first === undefined) throw new Error('no package is bundled')
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
    ['MIT AND GPL-2.0-only', ALLOWED_INSIDE],
    ['AGPL-3.0-only', ALLOWED_TO_DEVELOP],
    ['SEE LICENSE IN LICENSE.md', ALLOWED_TO_DEVELOP],
    ['', ALLOWED_TO_DEVELOP],
  ])('finds the licence %p', (license, allowed) => {
    const manifest = { name: 'example', version: '1.0.0', license }

    expect(licenseProblems([manifest], allowed)).toEqual([`example 1.0.0 is under ${license || 'no licence'}`])
    expect(licenseProblems([{ ...manifest, license: `(${license || 'GPL-3.0-only'} OR MIT)` }], allowed)).toHaveLength(
      license.startsWith('SEE') ? 1 : 0,
    )
  })

  test.each([
    ['a registry without advisories', '{}', { unreachable: undefined, problems: [] }],
    [
      'a registry with an advisory',
      '{"elysia":[{"id":1,"url":"https://example.org/1","title":"All is lost","severity":"high","vulnerable_versions":"<99.0.0"}]}',
      { unreachable: undefined, problems: expect.arrayContaining([expect.stringContaining('high: All is lost')]) },
    ],
    ['no registry', undefined, { unreachable: expect.stringContaining('ConnectionRefused'), problems: [] }],
  ])('reports the vulnerabilities of %s', async (_, answer, expected) => {
    await using registry = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: () => new Response(answer, { headers: { 'content-type': 'application/json' } }),
    })
    if (answer === undefined) await registry.stop(true)

    expect(await advisories(['env', `BUN_CONFIG_REGISTRY=${registry.url}`, process.execPath])).toEqual(expected)
  })
})

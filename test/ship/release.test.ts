import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { appendFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Version } from '@cyclonedx/cyclonedx-library/Spec'
import { JsonStrictValidator } from '@cyclonedx/cyclonedx-library/Validation'
import manifest from '../../package.json'
import { PAGES } from '../support/docs.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { IS_LONG } from '../support/long.ts'
import { lacks } from '../support/requirement.ts'
import { signAdHoc, signatureProblems } from './code-signature.ts'
import { copyProject } from './project-copy.ts'
import { describeCommit, MAC_TARGETS, runnerFor, runnerOf, TARGETS } from './release.ts'
import { runIn, runWell } from './run.ts'
import { shareFiles } from './share.ts'

const NAME = `plantstore-${manifest.version}`

let copies: readonly Awaited<ReturnType<typeof copyProject>>[] = []
const release = (index: number) => join(copies[index]?.path ?? '', 'dist/release')

beforeAll(async () => {
  if (!IS_LONG) return
  copies = [await copyProject(), await copyProject()]
  const runs = await Promise.all(copies.map(({ path }) => runIn(['bun', 'run', 'release'], path)))

  expect(runs.map(({ exitCode, stderr }) => (exitCode === 0 ? 'done' : stderr))).toEqual(['done', 'done'])
})

afterAll(() => {
  for (const copy of copies) copy[Symbol.dispose]()
})

describe.skipIf(!IS_LONG)('bun run release', () => {
  test('makes the same bytes from one commit in two folders', async () => {
    const [first, second] = await Promise.all(
      [0, 1].map((index) => Bun.file(join(release(index), 'SHA256SUMS')).text()),
    )

    const executable = Bun.file(join(release(0), `${NAME}-linux-x64/plantstore`))
    expect(Buffer.from(await executable.arrayBuffer()).includes(copies[0]?.path ?? '')).toBe(false)
    expect(copies[0]?.commit).toBe(copies[1]?.commit)
    expect(first?.replace(/^[0-9a-f]{64} {2}/gm, '').split('\n')).toEqual([
      `${NAME}-linux-x64.tar.gz`,
      `plantstore_${manifest.version}-1_amd64.deb`,
      `${NAME}-1.x86_64.rpm`,
      `${NAME}-linux-arm64.tar.gz`,
      `plantstore_${manifest.version}-1_arm64.deb`,
      `${NAME}-1.aarch64.rpm`,
      `${NAME}-darwin-arm64.tar.gz`,
      `${NAME}-darwin-x64.tar.gz`,
      `${NAME}.cdx.json`,
      '',
    ])
    expect(second).toBe(first)
    for (const index of [0, 1]) await runWell(['sha256sum', '--check', '--strict', 'SHA256SUMS'], release(index))
  })

  test.each([...TARGETS.map(({ name }) => name), ...MAC_TARGETS])(
    'packs the executable for %s with its documentation, contrib, share, licences and changelog',
    async (name) => {
      const list = ['tar', '--list', '--verbose', '--utc', '--gzip', '--file', `${NAME}-${name}.tar.gz`]
      const lines = (await runWell(list, release(0))).trim().split('\n')
      const entries = lines.map((line) => line.replace(/ +\d+ (?=\d{4}-)/, ' '))
      const contrib = (await runWell(['git', 'ls-files', 'contrib', 'docs/pictures/*.png', 'docs/pictures/*.svg']))
        .trim()
        .split('\n')
      const share = Object.keys(await shareFiles(new Date()))
      const documents = [...PAGES, ...contrib, ...share, 'CHANGELOG.md', 'LICENSE', 'THIRD_PARTY_LICENSES'].map(
        (page) => `-rw-r--r-- ${page}`,
      )
      const expected = [...documents, '-rwxr-xr-x plantstore'].map((entry) =>
        entry.replace(' ', ` root/root 2001-02-03 04:05 ${NAME}-${name}/`),
      )
      expect(entries.sort()).toEqual(expected.sort())
    },
  )

  test('names the image and the repository of the publisher in the texts of an archive', async () => {
    const pattern = '(ghcr[.]io|github[.]com|--repo)[/ ][[:alnum:]-]+/plantstore'
    const named = await runWell(['grep', '-EIhor', pattern, `${NAME}-linux-x64`], release(0))

    expect(new Set(named.trim().split('\n'))).toEqual(
      new Set(['ghcr.io/garden-club/plantstore', 'github.com/Garden-Club/plantstore', '--repo Garden-Club/plantstore']),
    )
  })

  for (const target of TARGETS) {
    test.skipIf(lacks(runnerFor(target)))(`makes an executable for ${target.name} that serves`, async () => {
      using folder = makeFolder()
      const archive = join(release(0), `${NAME}-${target.name}.tar.gz`)
      await runWell(['tar', '--extract', '--gzip', '--file', archive], folder.path)
      const unpacked = join(folder.path, `${NAME}-${target.name}`)
      const command = [...(runnerOf(target) ?? []), join(unpacked, 'plantstore')]
      const database = join(folder.path, 'plantstore.db')
      const [version, licenses, token] = await Promise.all([
        runPlantstore(['--version'], { command }),
        runPlantstore(['licenses'], { command }),
        runPlantstore(['token', 'create', '--user', 'me', '--database', database], { command }),
      ])
      await using server = await serve(database, [], { command })
      const sent = { token: token.stdout.trim(), body: { id: 1, name: 'Fern' } }
      const answers = [
        await server.request('POST', '/plants', sent),
        await server.request('GET', '/plants', { token: sent.token }),
      ]

      expect(version.stdout).toBe(`${manifest.version}+${copies[0]?.commit.slice(0, 12)}\n`)
      expect(licenses.stdout).toBe(await Bun.file(join(unpacked, 'THIRD_PARTY_LICENSES')).text())
      expect(await Promise.all(answers.map(async (answer) => [answer.status, await answer.json()]))).toEqual([
        [200, { name: 'Fern' }],
        [200, [{ name: 'Fern' }]],
      ])
      expect(await server.end()).toBe(0)
    })
  }

  test('signs for macOS as Bun does for arm64, byte by byte, and a changed byte invalidates the signature', () => {
    const executable = (name: string) => readFileSync(join(release(0), `${NAME}-${name}/plantstore`))
    const [arm64, x64] = [executable('darwin-arm64'), executable('darwin-x64')] as const

    expect([signatureProblems(arm64), signatureProblems(x64)]).toEqual([[], []])
    expect(signAdHoc(arm64).equals(arm64)).toBe(true)
    x64.writeUInt8(x64.readUInt8(x64.length >> 1) ^ 1, x64.length >> 1)
    expect(signatureProblems(x64)).toEqual(['1 pages have another hash'])
  })

  test('writes a valid bill of materials', async () => {
    const text = await Bun.file(join(release(0), `${NAME}.cdx.json`)).text()
    const bill = JSON.parse(text)

    expect(await new JsonStrictValidator(Version.v1dot6).validate(text)).toBeNull()
    expect(bill.metadata.component).toMatchObject({
      name: 'plantstore',
      version: expect.stringContaining(`${manifest.version}+`),
    })
    expect(bill.metadata.timestamp).toBe('2001-02-03T04:05:06.000Z')
  })

  test.each([
    ['outdated licences', 'src/cli/third-party-licenses.txt', /$/, 'and one more\n', 'run bun run licenses'],
    ['an address that is none', 'package.json', 'example.org', 'plantstore.invalid', 'replace the address in author'],
    ['a homepage without an owner', 'package.json', 'Garden-Club', 'OWNER', 'replace OWNER in homepage'],
  ])('refuses %s', async (_, name, from, to, message) => {
    const path = copies[0]?.path ?? ''
    const file = Bun.file(join(path, name))
    await file.write((await file.text()).replace(from, to))
    const { exitCode, stderr } = await runIn(['bun', 'run', 'release'], path)

    expect(exitCode).toBe(1)
    expect(stderr).toContain(message)
  })

  test('marks a commit as dirty if files have changed', async () => {
    using copy = await copyProject()
    const before = await describeCommit(copy.path)
    appendFileSync(join(copy.path, 'src/main.ts'), '\n')
    const after = await describeCommit(copy.path)

    expect(before).toEqual({ name: copy.commit.slice(0, 12), madeAt: new Date('2001-02-03T04:05:06Z') })
    expect(after).toEqual({ ...before, name: `${before.name}.dirty` })
  })
})

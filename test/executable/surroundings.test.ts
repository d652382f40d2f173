import { describe, expect, test } from 'bun:test'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { COMPILED, EXECUTABLE, runPlantstore, serve, startExecutable } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { runProgram } from '../support/program.ts'
import { lacks, program } from '../support/requirement.ts'

/** Writes all files that Bun would heed in a working directory. Code that runs leaves the file `evil-was-here`. */
function writeHostileFiles(folder: string) {
  const variables = [
    'PLANTSTORE_LISTEN=127.0.0.1:1',
    'PLANTSTORE_DATABASE=evil.db',
    'PLANTSTORE_NO_DOCS=true',
    'PLANTSTORE_MAX_BODY=1B',
    'PLANTSTORE_EVIL=1',
    'NODE_ENV=development',
    'BUN_INSPECT=127.0.0.1:0?break=1',
    'BUN_OPTIONS=--preload=./evil.ts',
    'BUN_BE_BUN=1',
    'NODE_OPTIONS=--require=./evil.ts',
    '',
  ].join('\n')
  const names = ['.env', '.env.local', '.env.production', '.env.development']
  for (const name of names) writeFileSync(join(folder, name), variables)
  writeFileSync(
    join(folder, 'evil.ts'),
    "require('node:fs').writeFileSync('evil-was-here', '')\nthrow new Error('evil')\n",
  )
  const bunfig =
    'preload = ["./evil.ts"]\nlogLevel = "debug"\n[run]\nsilent = false\n[serve.static]\nplugins = ["./evil.ts"]\n'
  writeFileSync(join(folder, 'bunfig.toml'), bunfig)
  writeFileSync(join(folder, 'package.json'), '{"name":"evil","type":"commonjs","imports":{"#*":"./evil.ts"}}')
  writeFileSync(join(folder, 'tsconfig.json'), '{"compilerOptions":{"paths":{"*":["./evil.ts"]}}}')
}

describe.skipIf(lacks(COMPILED))('the executable', () => {
  test('serves without a home and without any other program', async () => {
    using folder = makeFolder()
    const surroundings = { cwd: folder.path, env: { PATH: '/nonexistent' } }
    await using server = await serve('plantstore.db', [], surroundings)
    const { stdout } = await runPlantstore(['token', 'create', '--user', 'me'], surroundings)
    const token = stdout.trim()

    const created = await server.request('POST', '/plants', { token, body: { id: 1, name: 'Fern' } })
    const listed = await server.request('GET', '/plants', { token })
    const docs = await server.request('GET', '/docs')

    expect([created.status, listed.status, docs.status], await created.text()).toEqual([200, 200, 200])
    expect(await listed.json()).toEqual([{ name: 'Fern' }])
    expect(await server.end()).toBe(0)
    expect(readdirSync(folder.path)).toEqual(['plantstore.db'])
  })

  test('heeds no .env, bunfig.toml, package.json and tsconfig.json of the working directory', async () => {
    using folder = makeFolder()
    writeHostileFiles(folder.path)
    const before = readdirSync(folder.path)
    await using server = await startExecutable(['serve', '--listen', '127.0.0.1:0', '--log-level', 'debug'], {
      cwd: folder.path,
    })

    const docs = await server.request('GET', '/docs')
    const unknown = await server.request('GET', '/nothing')
    const exitCode = await server.end()

    expect(docs.status, await docs.text()).toBe(200)
    expect(await unknown.json()).toMatchObject({ error: 40401 })
    expect({ stderr: server.stderr(), exitCode }).toEqual({ stderr: '', exitCode: 0 })
    expect(server.stdout()).toContain(`"database":"${join(folder.path, 'plantstore.db')}"`)
    expect(readdirSync(folder.path).sort()).toEqual([...before, 'plantstore.db'].sort())
    const { stdout, stderr } = await runPlantstore(['token', 'list'], { cwd: folder.path })
    expect([stdout.startsWith('id  user'), stderr]).toEqual([true, ''])
  })
})

/** The libraries of a minimal image with glibc. The dynamic linker and the kernel's own object are no files of libraries. */
const ALLOWED = ['libc.so.6', 'libdl.so.2', 'libm.so.6', 'libpthread.so.0']

describe.skipIf(process.platform !== 'linux' || lacks(COMPILED, program('ldd')))('the executable', () => {
  test('needs no libraries but those of glibc', async () => {
    const { stdout, exitCode } = await runProgram(['ldd', EXECUTABLE || 'none'])
    const names = stdout.split('\n').flatMap((line) => /^\t(\S+)/.exec(line)?.[1] ?? [])
    const libraries = names.filter((name) => !/^linux-vdso|\/ld-linux/.test(name))

    expect(exitCode).toBe(0)
    expect(libraries).toContain('libc.so.6')
    expect(libraries.filter((name) => !ALLOWED.includes(name))).toEqual([])
  })
})

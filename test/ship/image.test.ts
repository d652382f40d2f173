import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Glob } from 'bun'
import { EXECUTABLE } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { lacks } from '../support/requirement.ts'
import { CONTAINERS, startContainer } from './container.ts'
import { imageConfiguration } from './dockerfile.ts'
import { PLANT_ROUND, plantRound } from './plant-round.ts'
import { addProgram, makeBaseRoot, makeDirectory, NONROOT } from './root.ts'

const PLANTSTORE = '/usr/local/bin/plantstore'
const SHELLS = ['sh', 'bash', 'dash', 'ash', 'busybox', 'zsh', 'ksh', 'perl', 'python3']
const PACKAGES_TIMEOUT_MS = 60_000

let root: Awaited<ReturnType<typeof makeBaseRoot>> | undefined

/** A container of the image that the Dockerfile describes, and the folder that is its /data. */
async function startImage() {
  const data = makeFolder()
  makeDirectory(data.path, 0o755, NONROOT)
  const { user, env, args } = await imageConfiguration()
  const container = await startContainer({ root: root?.path ?? '', user, env, args, data: data.path })
  return {
    ...container,
    data: data.path,
    async [Symbol.asyncDispose]() {
      await container[Symbol.asyncDispose]()
      data[Symbol.dispose]()
    },
  }
}

describe.skipIf(lacks(CONTAINERS))('the image, on the packages of distroless base', () => {
  beforeAll(async () => {
    root = await makeBaseRoot()
    addProgram(root.path, EXECUTABLE || 'none', PLANTSTORE)
    makeDirectory(join(root.path, 'data'), 0o755, NONROOT)
  }, PACKAGES_TIMEOUT_MS)
  afterAll(() => root?.[Symbol.dispose]())

  test('serves as user 65532, is healthy, makes tokens, and ends with 0 at SIGTERM', async () => {
    await using container = await startImage()
    const { healthcheck } = await imageConfiguration()
    await container.waitFor(healthcheck)
    const answers = await plantRound(container)
    const { exitCode, stdout, stderr } = await container.end()

    expect(answers).toEqual(PLANT_ROUND)
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(stdout).toContain('"address":"http://0.0.0.0:3000","database":"/data/plantstore.db"')
    expect(stdout).toContain('"signal":"SIGTERM"')
    expect(readdirSync(container.data)).toEqual(['plantstore.db'])
    expect(statSync(join(container.data, 'plantstore.db'))).toMatchObject({ uid: NONROOT, gid: NONROOT })
  })

  test('has no capability, no way to get one, and no network but loopback', async () => {
    await using container = await startImage()
    await container.waitFor([PLANTSTORE, 'healthcheck'])
    const pid = await container.pid()
    const status = Object.fromEntries(
      readFileSync(`/proc/${pid}/status`, 'utf8')
        .split('\n')
        .map((line) => line.split(':\t')),
    )
    const interfaces = [...readFileSync(`/proc/${pid}/net/dev`, 'utf8').matchAll(/^ *(\w+):/gm)].map(([, name]) => name)

    expect(status).toMatchObject({
      Uid: '65532\t65532\t65532\t65532',
      Gid: '65532\t65532\t65532\t65532',
      CapEff: '0000000000000000',
      CapBnd: '0000000000000000',
      CapAmb: '0000000000000000',
      NoNewPrivs: '1',
    })
    expect(interfaces).toEqual(['lo'])
  })

  test('refuses to write anywhere but in /data', async () => {
    await using container = await startImage()
    await container.waitFor([PLANTSTORE, 'healthcheck'])
    const write = async (folder: string) => {
      const database = join(folder, 'other.db')
      const { exitCode } = await container.exec([PLANTSTORE, 'token', 'create', '--user', 'me', '--database', database])
      return [folder, exitCode]
    }
    const folders = [
      '/',
      '/tmp',
      '/home/nonroot',
      '/etc',
      '/usr/local/bin',
      '/var/tmp',
      '/dev',
      '/sys',
      '/proc',
      '/run',
    ]

    expect(await Promise.all(folders.map(write))).toEqual(folders.map((folder) => [folder, 3]))
    expect(await write('/data')).toEqual(['/data', 0])
  })

  test('has no shell, and no program but its own', async () => {
    await using container = await startImage()
    await container.waitFor([PLANTSTORE, 'healthcheck'])
    const shell = await container.exec(['/bin/sh', '-c', 'exit 0'])
    const files = [...new Glob('**').scanSync({ cwd: root?.path ?? '', dot: true })]

    expect(shell.exitCode).not.toBe(0)
    expect(shell.stderr).toContain('/bin/sh')
    expect(files.filter((file) => SHELLS.includes(file.split('/').at(-1) ?? ''))).toEqual([])
    expect(files.filter((file) => /(?:^|\/)s?bin\//.test(file))).toEqual([PLANTSTORE.slice(1)])
  })
})

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Glob } from 'bun'
import { lacks } from '../support/requirement.ts'
import { CONTAINERS, startContainer } from './container.ts'
import { imageConfiguration } from './dockerfile.ts'
import { makeImageRoot, NONROOT, PLANTSTORE } from './image-root.ts'
import { PLANT_ROUND, plantRound } from './plant-round.ts'

const SHELLS = ['sh', 'bash', 'dash', 'ash', 'busybox', 'zsh', 'ksh', 'perl', 'python3']
const PACKAGES_TIMEOUT_MS = 60_000

let root: Awaited<ReturnType<typeof makeImageRoot>> | undefined

/** Starts a container as the Dockerfile describes. */
async function startImage() {
  return startContainer({ root: root?.path ?? '', ...(await imageConfiguration()) })
}

describe.skipIf(lacks(CONTAINERS))('a container of the image, on the packages of distroless base', () => {
  beforeAll(async () => {
    root = await makeImageRoot()
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

  test('has no capability, no way to get one, and only the loopback network', async () => {
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

  test('can write only to /data', async () => {
    await using container = await startImage()
    await container.waitFor([PLANTSTORE, 'healthcheck'])
    const write = async (folder: string) => {
      const database = join(folder, 'other.db')
      const { exitCode } = await container.exec([PLANTSTORE, 'token', 'create', '--user', 'me', '--database', database])
      return [folder, exitCode]
    }
    const folders = '/ /tmp /home/nonroot /etc /usr/local/bin /var/tmp /dev /sys /proc /run'.split(' ')

    expect(await Promise.all(folders.map(write))).toEqual(folders.map((folder) => [folder, 3]))
    expect(await write('/data')).toEqual(['/data', 0])
  })

  test('has no shell, and no program but plantstore', async () => {
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

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { readPage, yamlInContrib } from '../../support/docs.ts'
import { makeFolder } from '../../support/folder.ts'
import { lacks } from '../../support/requirement.ts'
import { CONTAINERS, startContainer } from '../container.ts'
import { imageConfiguration } from '../dockerfile.ts'
import { makeImageRoot, NONROOT, PLANTSTORE, unpack } from '../image-root.ts'
import { runWell } from '../run.ts'

/** The programs of busybox that the commands use. */
const APPLETS = ['sh', 'sleep', 'ls', 'cat', 'mv', 'mkdir']

const TOOLS = (await yamlInContrib('contrib/kubernetes/sqlite/tools.yaml')).spec
const [, cronJob] = await yamlInContrib('contrib/kubernetes/sqlite/backup.yaml')
const [BACKUP] = cronJob.spec.jobTemplate.spec.template.spec.containers
const [SERVER] = (await yamlInContrib('contrib/kubernetes/sqlite/stateful-set.yaml')).spec.template.spec.containers

/** The part of a container in a manifest that is read here. */
interface Container {
  readonly args: readonly string[]
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[]
}

/** The commands of a section that run in the pod for tools: what stands before `kubectl`, and what stands after `--`. */
async function commandsOf(page: string, heading: string) {
  const [, section = ''] = (await readPage(page)).split(`# ${heading}\n`)
  const [own = ''] = section.split(/^##/m)
  const lines = [...own.matchAll(/^ *(\(umask .*)?kubectl exec (?:-i )?plantstore-tools( -c shell)? -- (.+)$/gm)]
  return lines.map(([, before = '', shell, command = '']) => ({ isInShell: shell !== undefined, before, command }))
}

/** Volumes as the kubelet makes them for `fsGroup`: of root, and writable to the group. */
function makeVolumes() {
  const folder = makeFolder()
  const path = (name: string): string => join(folder.path, name)
  for (const volume of ['data', 'backups', 'scratch'].map(path)) {
    mkdirSync(volume)
    chownSync(volume, 0, NONROOT)
    chmodSync(volume, 0o2775)
  }
  return { path, [Symbol.dispose]: folder[Symbol.dispose] }
}
type Volumes = ReturnType<typeof makeVolumes>

const mountsOf = ({ volumeMounts }: Container, volumes: Volumes) =>
  Object.fromEntries(volumeMounts.map(({ name, mountPath }) => [mountPath, volumes.path(name)]))

let image: Awaited<ReturnType<typeof makeImageRoot>> | undefined
const busybox = makeFolder()

/** Starts a container of the image with the arguments and the volumes of a manifest. */
const startImage = async (container: Container, volumes: Volumes) =>
  startContainer({
    ...(await imageConfiguration()),
    root: image?.path ?? '',
    args: [PLANTSTORE, ...container.args],
    volumes: mountsOf(container, volumes),
  })

/** Starts a server as the StatefulSet says, but without the wait for a proxy at its end, and waits until it answers. */
async function startServer(volumes: Volumes) {
  const server = await startImage({ ...SERVER, args: [...SERVER.args, '--drain-wait', '0s'] }, volumes)
  await server.waitFor([PLANTSTORE, 'healthcheck'])
  return server
}

/** Runs commands in the containers of the pod for tools, each as a shell on the machine of the operator would. */
async function runInTools(volumes: Volumes, folder: string, commands: Awaited<ReturnType<typeof commandsOf>>) {
  const [plantstore, shell] = TOOLS.containers
  await using tools = await startImage(plantstore, volumes)
  await using shellContainer = await startContainer({
    root: busybox.path,
    user: NONROOT,
    args: shell.command,
    env: ['PATH=/bin'],
    volumes: mountsOf(shell, volumes),
  })
  await tools.waitFor([PLANTSTORE, '--version'])
  await shellContainer.waitFor(['ls'])
  const outputs: string[] = []
  for (const { isInShell, before, command } of commands) {
    const { execCommand } = isInShell ? shellContainer : tools
    outputs.push(await runWell(['bash', '-c', `${before}${execCommand.join(' ')} ${command}`], folder))
  }
  const idle = await tools.end()
  return { outputs, idle }
}

/** Runs a command on a database from outside. Resolves to what it prints. */
const runOn = (database: string, ...command: readonly string[]): Promise<string> =>
  runWell([join(image?.path ?? '', PLANTSTORE), ...command, '--database', database])

const namesIn = async (database: string): Promise<readonly string[]> =>
  [...(await runOn(database, 'export')).matchAll(/"name":"(\w+)"/g)].map(([, name = '']) => name)

/** The states in a list of tokens. */
const statesIn = (tokens = ''): readonly string[] => tokens.match(/\b(?:active|revoked)\b/g) ?? []

describe.skipIf(lacks(CONTAINERS))('on volumes of a cluster', () => {
  beforeAll(async () => {
    image = await makeImageRoot()
    await unpack(['busybox-static'], busybox.path)
    for (const applet of APPLETS) symlinkSync('busybox', join(busybox.path, 'bin', applet))
  })
  afterAll(() => {
    image?.[Symbol.dispose]()
    busybox[Symbol.dispose]()
  })

  test.concurrent('the CronJob makes a backup beside the server', async () => {
    using volumes = makeVolumes()
    await using server = await startServer(volumes)
    await server.plantRound()
    await using backup = await startImage(BACKUP, volumes)
    const { exitCode, stdout, stderr } = await backup.ended
    const [name = '', ...others] = readdirSync(volumes.path('backups'))
    const file = join(volumes.path('backups'), name)

    expect({ exitCode, stdout, others }).toEqual({ exitCode: 0, stdout: `/backups/${name}\n`, others: [] })
    expect(stderr).toContain('users 1, tokens 1, plants 1')
    expect(statSync(file)).toMatchObject({ uid: NONROOT, gid: NONROOT })
    expect(await namesIn(file)).toEqual(['Fern'])
  })

  test.concurrent.each([
    ['docs/how-to/backup-containers.md', 'Restore in Kubernetes', 'plants.db', ['Fern']],
    ['docs/how-to/upgrade-containers.md', 'The schema is newer in Kubernetes', 'before-upgrade.db', ['Fern', 'Ivy']],
  ])('the pod for tools runs the commands of %s under "%s"', async (page, heading, backup, plants) => {
    using volumes = makeVolumes()
    using machine = makeFolder()
    const database = join(volumes.path('data'), 'plantstore.db')
    const commands = await commandsOf(page, heading)
    {
      await using server = await startServer(volumes)
      await server.plantRound()
      await server.exec([PLANTSTORE, 'token', 'create', '--user', 'me'])
      const later = `${PLANTSTORE} import <<< '{"user":"me","id":2,"name":"Ivy"}'`
      for (const command of [`${PLANTSTORE} backup - > ${backup}`, later]) {
        await runWell(['bash', '-c', `${server.execCommand.join(' ')} ${command}`], machine.path)
      }
      await server.exec([PLANTSTORE, 'token', 'revoke', '2'])
      await server.end()
    }

    // The redirection of a command to plants.jsonl is to the folder of the operator.
    const { outputs, idle } = await runInTools(volumes, machine.path, commands)

    expect(commands.length).toBeGreaterThan(4)
    // The last command but one lists the tokens of the backup. The last one revokes token 2 again.
    expect(statesIn(outputs.at(-2))).toEqual(['active', 'active'])
    expect(idle.exitCode).toBe(0)
    expect(await namesIn(database)).toEqual(plants)
    expect(statesIn(await runOn(database, 'token', 'list'))).toEqual(['active', 'revoked'])
    expect(statSync(database)).toMatchObject({ uid: NONROOT, gid: NONROOT })
    expect(existsSync(join(volumes.path('scratch'), backup))).toBe(true)
    await using _again = await startServer(volumes)
  })
})

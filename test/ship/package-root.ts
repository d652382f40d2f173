import { chmodSync } from 'node:fs'
import { basename, join } from 'node:path'
import { makeFolder } from '../support/folder.ts'
import { startProgram } from '../support/program.ts'
import { program, type Requirement } from '../support/requirement.ts'
import { until } from '../support/until.ts'
import { runWell } from './run.ts'
import { bootSystemd, SYSTEMD } from './systemd.ts'

/** What the tests of installed packages need. */
export const PACKAGE_ROOTS: readonly Requirement[] = [SYSTEMD, ...['mmdebstrap', 'nfpm', 'rpm'].map(program)]

const LOG = '/var/log/plantstore.log'
const PLANTS = 'http://127.0.0.1:3000/plants'
/** What an administrator has added to the unit. */
const DROP_IN = '/etc/systemd/system/plantstore.service.d/log.conf'
const CREATE_PLANTS = join(import.meta.dir, 'create-plants.ts')

/** Makes the root file system of a Debian release, until it is disposed of. apt installs packages, and perhaps one from a file. */
export async function makeDebianRoot(release: string, packages: readonly string[], file?: string) {
  const folder = makeFolder()
  // Users of the root must get through it.
  chmodSync(folder.path, 0o755)
  const path = join(folder.path, 'root')
  try {
    const install = `chroot "$1" apt-get install --yes --no-install-recommends /tmp/${basename(file ?? '')}`
    const hooks = file === undefined ? [] : [`--customize-hook=copy-in ${file} /tmp`, `--customize-hook=${install}`]
    const include = packages.map((name) => `--include=${name}`)
    await runWell(['mmdebstrap', '--variant=apt', ...include, ...hooks, release, path])
  } catch (error) {
    folder[Symbol.dispose]()
    throw error
  }
  return { path, [Symbol.dispose]: folder[Symbol.dispose] }
}

/** Starts the systemd of a root file system for a package, with the settings of an administrator beside its unit. */
export async function bootMachine(root: string) {
  const systemd = await bootSystemd(root)
  const shell = (script: string) => systemd.run(['/bin/sh', '-euc', script])
  await shell(`mkdir -p $(dirname ${DROP_IN}) && printf '[Service]\\nStandardOutput=append:${LOG}\\n' > ${DROP_IN}`)
  /** Runs curl on the plants with a token. */
  const curl = (token: string, args: readonly string[] = [], path = '') =>
    systemd.run(['curl', '--silent', '--header', `authorization: Bearer ${token}`, ...args, PLANTS + path])
  const list = async (token: string): Promise<readonly { readonly name: string }[]> => JSON.parse(await curl(token))
  return {
    ...systemd,
    shell,
    curl,
    list,
    /** The end of the log of the service. */
    log: () => shell(`tail -n 5 ${LOG}`),
    untilHealthy: () =>
      until('the service is healthy', async (see) => {
        return see(await systemd.tryRun(['plantstore', 'healthcheck'])).exitCode === 0
      }),
    /** Creates plants until `end`, which resolves to what create-plants.ts prints. */
    load(token: string, firstId: number) {
      const url = new URL(PLANTS).origin
      const command = [...systemd.inNetwork(), process.execPath, CREATE_PLANTS, url, token, String(firstId)]
      const { child, ended } = startProgram(command)
      return {
        async end(): Promise<Load> {
          child.kill('SIGTERM')
          const { stdout, stderr } = await ended
          if (stdout === '') throw new Error(stderr)
          return JSON.parse(stdout)
        },
      }
    },
  }
}

/** What a load has seen. */
interface Load {
  readonly acknowledged: readonly number[]
  readonly refused: number
  readonly longestGapMs: number
}

/** A machine with a package. */
export type Machine = Awaited<ReturnType<typeof bootMachine>>

import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { blockAfter } from '../support/docs.ts'
import { EXECUTABLE } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import type { Requirement } from '../support/requirement.ts'
import { until } from '../support/until.ts'
import { PROJECT, runIn, runWell } from './run.ts'

/** The path of the project inside the test's systemd. */
export const PROJECT_INSIDE = '/opt/plantstore'

/** Empty targets in place of systemd's own, which units refer to. */
const TARGETS = ['default', 'sysinit', 'basic', 'shutdown', 'network', 'multi-user', 'timers']

/**
 * Mounts a temporary layer over a root file system and becomes its systemd. It knows no unit of the machine, and targets of
 * another root want nothing. In a chroot it could make no user namespaces, hence `pivot_root`.
 */
const BOOT = `set -eu
echo $$ > "$CGROUP/cgroup.procs"
exec unshare --fork --pid --mount --uts --ipc --net --cgroup --kill-child -- /bin/sh -c '
set -eu
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs "$FOLDER"
cd "$FOLDER"
mkdir upper work root
mount -t overlay -o "lowerdir=$ROOT,upperdir=upper,workdir=work" overlay root
cd root
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
mount --rbind /dev dev
mkdir -p ".$PROJECT_INSIDE" outside
mount --bind "$PROJECT" ".$PROJECT_INSIDE"
rm -rf etc/systemd/system lib/systemd/system/*.wants
mkdir -p etc/systemd/system
UNIT_PATH=
if [ "$ROOT" = / ]; then
  UNIT_PATH=SYSTEMD_UNIT_PATH=/etc/systemd/system
  for name in $TARGETS; do printf "[Unit]\\nDefaultDependencies=no\\n" > "etc/systemd/system/$name.target"; done
fi
printf "[Manager]\\nDefaultStandardOutput=null\\n" > etc/systemd/system.conf
pivot_root . outside
umount -l /outside
exec env -i container=test PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin $UNIT_PATH \
  /lib/systemd/systemd --system --log-target=null --show-status=0
'`

/**
 * Starts a systemd in namespaces of its own. It sees the files of a root file system, by default the machine's, but changes none.
 */
export async function bootSystemd(root = '/') {
  const folder = makeFolder()
  const cgroup = join(unifiedCgroup(), `plantstore-${crypto.randomUUID()}`)
  mkdirSync(cgroup)
  const child = Bun.spawn(['/bin/sh', '-c', BOOT], {
    env: {
      PATH: process.env.PATH ?? '',
      FOLDER: folder.path,
      ROOT: root,
      CGROUP: cgroup,
      PROJECT,
      PROJECT_INSIDE,
      TARGETS: TARGETS.join(' '),
    },
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'pipe',
  })
  const dispose = async () => {
    child.kill('SIGKILL')
    await child.exited
    await removeCgroup(cgroup)
    folder[Symbol.dispose]()
  }
  const enter = () => ['nsenter', '--all', '--root', '--wd', `--target=${readChild(child.pid)}`]
  try {
    await until('systemd has started', async (see) => {
      if (child.exitCode !== null) throw new Error(`systemd ended: ${await child.stderr.text()}`)
      if (readChild(child.pid) === '') return false
      return see(await runIn([...enter(), 'systemctl', 'is-active', 'default.target'])).exitCode === 0
    })
  } catch (error) {
    await dispose()
    throw error
  }
  const run = (command: readonly string[]) => runWell([...enter(), ...command])
  return {
    /** What stands before a command of the machine to run it in this systemd's network. */
    inNetwork: () => ['nsenter', '--net', `--target=${readChild(child.pid)}`],
    /** Runs a command as root beside the units, and returns its stdout. Rejects if it fails. */
    run,
    /** Runs a command that may fail. */
    tryRun: (command: readonly string[]) => runIn([...enter(), ...command]),
    /** Writes a file inside. */
    write: (path: string, text: string) => run(['/bin/sh', '-c', 'printf %s "$1" > "$0"', path, text]),
    /** Properties of a unit, by the names of `systemctl show`. */
    async show(properties: readonly string[], unit = 'plantstore'): Promise<Record<string, string>> {
      const shown = await run(['systemctl', 'show', `--property=${properties.join()}`, unit])
      return Object.fromEntries([...shown.matchAll(/^(\w+)=(.*)$/gm)].map(([, name, value]) => [name, value]))
    },
    [Symbol.asyncDispose]: dispose,
  }
}

/** Installs the executable by the commands of the documentation. Resolves to the first token. */
export async function installByHand(systemd: Awaited<ReturnType<typeof bootSystemd>>): Promise<string> {
  await systemd.run(['cp', '-r', `${PROJECT_INSIDE}/contrib`, '/tmp'])
  await systemd.run(['cp', (EXECUTABLE || 'none').replace(PROJECT, PROJECT_INSIDE), '/tmp/plantstore'])
  const commands = await blockAfter('commands of: plantstore.service')
  // The last command need not wait for the service, because it makes the database if that does not exist.
  return (await systemd.run(['/bin/sh', '-euc', `cd /tmp\n${commands}`])).trim().split('\n').at(-1) ?? ''
}

/** The one child of `unshare`; an empty string until it has started. */
const readChild = (pid: number): string => {
  const file = `/proc/${pid}/task/${pid}/children`
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : ''
}

function unifiedCgroup(): string {
  const mount = /^\S+ \S+ \S+ \S+ (\S+) .* - cgroup2 /m.exec(readFileSync('/proc/self/mountinfo', 'utf8'))
  if (mount?.[1] === undefined) throw new Error('this machine has no unified cgroups')
  return mount[1]
}

/** Removes a cgroup from the innermost one outwards, once they are empty. */
async function removeCgroup(path: string): Promise<void> {
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    if (entry.isDirectory()) await removeCgroup(join(path, entry.name))
  }
  const isEmpty = () => /^populated 0/m.test(readFileSync(join(path, 'cgroup.events'), 'utf8'))
  await until(`${path} is empty`, isEmpty)
  rmdirSync(path)
}

const PROGRAMS = ['systemctl', 'systemd-analyze', 'unshare', 'nsenter', 'pivot_root', 'runuser', 'useradd', 'curl']

export const SYSTEMD: Requirement = {
  missing: 'root, systemd or unified cgroups are missing',
  isMet: () =>
    process.getuid?.() === 0 &&
    existsSync('/lib/systemd/systemd') &&
    PROGRAMS.every((program) => Bun.which(program) !== null) &&
    / - cgroup2 /.test(readFileSync('/proc/self/mountinfo', 'utf8')),
}

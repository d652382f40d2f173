import { cpSync, existsSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'

export const PROJECT = resolve(import.meta.dir, '../..')

/** Copies all files that git has or would add, as they are now, and links the packages. `isWanted` may leave some out. */
export function copyProject(copy: string, isWanted = (_file: string) => true): void {
  const names = git(PROJECT, 'ls-files', '-z', '--cached', '--others', '--exclude-standard').toString().split('\0')
  for (const name of names)
    if (name !== '' && isWanted(name) && existsSync(join(PROJECT, name))) cpSync(join(PROJECT, name), join(copy, name))
  symlinkSync(join(PROJECT, 'node_modules'), join(copy, 'node_modules'))
}

/** Makes a copy a repository with packages of its own, which some tests ask for. */
export function makeRepository(copy: string): void {
  runIn(copy, ['rm', 'node_modules'])
  runIn(copy, [process.execPath, 'install', '--frozen-lockfile'])
  git(copy, 'init', '--quiet')
  git(copy, 'add', '--all')
  git(copy, '-c', 'user.name=copy', '-c', 'user.email=copy@localhost', 'commit', '--quiet', '--message=copy')
}

/** Runs git in a repository, and returns what it prints. */
export const git = (cwd: string, ...args: readonly string[]): Buffer => runIn(cwd, ['git', ...args])

function runIn(cwd: string, command: readonly string[]): Buffer {
  const { stdout, stderr, exitCode } = Bun.spawnSync([...command], { cwd })
  if (exitCode !== 0) throw new Error(`${command.join(' ')}: ${stderr}`)
  return stdout
}

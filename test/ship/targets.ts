import { existsSync } from 'node:fs'
import type { Requirement } from '../support/requirement.ts'

/** A kind of machine with released executables. All are Linux with glibc. */
export interface Target {
  /** The compiler's name for the target. */
  readonly name: string
  /** The value of `process.arch`. */
  readonly arch: string
  /** A program that runs the target's executables on other machines, and its libraries. */
  readonly emulator: { readonly program: string; readonly libraries: string; readonly packages: string }
}

/** All targets. The packages are Debian's. */
export const TARGETS: readonly Target[] = [
  {
    name: 'linux-x64',
    arch: 'x64',
    emulator: { program: 'qemu-x86_64', libraries: '/usr/x86_64-linux-gnu', packages: 'qemu-user libc6-amd64-cross' },
  },
  {
    name: 'linux-arm64',
    arch: 'arm64',
    emulator: { program: 'qemu-aarch64', libraries: '/usr/aarch64-linux-gnu', packages: 'qemu-user libc6-arm64-cross' },
  },
]

/** The command that runs an executable for a target on this machine; `undefined` if no command can. */
export function runnerOf({ arch, emulator }: Target): readonly string[] | undefined {
  if (process.platform !== 'linux') return undefined
  if (arch === process.arch) return []
  if (Bun.which(emulator.program) === null || !existsSync(emulator.libraries)) return undefined
  return [emulator.program, '-L', emulator.libraries]
}

/** What this machine needs to run the executables for a target. */
export const runnerFor = (target: Target): Requirement => ({
  missing: `${target.emulator.packages} are missing, to run executables for ${target.name}`,
  isMet: () => runnerOf(target) !== undefined,
})

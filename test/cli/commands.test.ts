import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Glob } from 'bun'
import { MOUNTS } from '../support/disk.ts'
import { COMMAND, COMPILED, EXECUTABLE, runPlantstore } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { withoutProgress } from '../support/progress.ts'
import { program, type Requirement } from '../support/requirement.ts'
import { MAY_CHANGE_USER, nobodyMayRun } from '../support/restricted.ts'
import { STRACE } from '../support/strace.ts'
import { filled, lineOfDifference, testTranscripts } from '../support/transcript.ts'

/** What steps need that hold these words. */
const NEEDS: readonly (readonly [word: RegExp, requirement: Requirement])[] = [
  [/\b(?:ask|request|logged|metrics|curl)\b/, program('curl')],
  [/\bsetpriv\b/, MAY_CHANGE_USER],
  [/--reuid=/, nobodyMayRun(...COMMAND)],
  [/\bstrace\b/, STRACE],
  [/\b(?:unshare|installed)\b/, MOUNTS],
  [/\binstalled\b/, COMPILED],
  [/\/proc\/|\/dev\/full/, { missing: 'this is no Linux', isMet: () => process.platform === 'linux' }],
  [/\b(?:self_signed|signed_by)\b/, program('openssl')],
  ...['sqlite3', 'jq', 'openssl', 'promtool', 'python3', 'script'].map(
    (name) => [new RegExp(`(?:^|[ (|])${name} `, 'm'), program(name)] as const,
  ),
]

/**
 *     # Says which token it revoked.
 *     $ plantstore token create --user me 2>log
 *     {token1}
 *     $ plantstore token revoke - --json <<end
 *     > {token1}
 *     > end
 *     ! Revoked token 1 of user me (write).
 *     {"revoked":1}
 *     $ plantstore token revoke 2
 *     ! plantstore: There is no such token: plantstore token list shows all.
 *     [1]
 *
 * Each test has an empty folder of its own, whose path is `{folder}`. The shell runs the line after `$` with those after `>`.
 * Then follows all that it prints: on stderr after `!`, on stdout, and its exit code unless that is 0. transcript.sh has functions
 * for servers and requests.
 */
const TERMINAL = {
  asked: /\$ .*\n(?:> ?.*\n)*/,
  needs: (scripts: string) => NEEDS.flatMap(([word, requirement]) => (word.test(scripts) ? [requirement] : [])),
  open: makeStage,
}

/** An empty folder for a transcript, in which `plantstore` is a program. Ends the servers that are left. */
async function makeStage() {
  const outside = makeFolder()
  const makeInside = (name: string) => mkdirSync(join(outside.path, name), { recursive: true }) ?? ''
  const [folder, state, bin] = [makeInside('folder'), makeInside('state'), makeInside('bin')]
  if (EXECUTABLE) symlinkSync(EXECUTABLE, join(bin, 'plantstore'))
  else writeFileSync(join(bin, 'plantstore'), `#!/bin/sh\nexec '${COMMAND.join("' '")}' "$@"\n`, { mode: 0o755 })
  const env = { PATH: `${bin}:${process.env.PATH}`, STATE: state }
  const functions = join(import.meta.dir, 'support/transcript.sh')
  const known = new Map([['folder', folder]])
  return {
    known,
    async answer(asked: string) {
      const script = filled(asked, known).replace(/^(?:\$ |> ?)/gm, '')
      const options = { command: ['sh'], cwd: folder, env }
      const { stdout, stderr, exitCode } = await runPlantstore(['-c', `. '${functions}'\n${script}`], options)
      const told = withoutProgress(stderr).replace(/^/gm, '! ').replace(/! $/, '')
      return told + stdout + (exitCode === 0 ? '' : `[${exitCode}]\n`)
    },
    async [Symbol.asyncDispose]() {
      for (const file of new Glob('*/pid').scanSync(state)) {
        const hasEnded = existsSync(join(state, file, '../code'))
        if (!hasEnded) process.kill(Number(readFileSync(join(state, file), 'utf8')), 'SIGKILL')
      }
      outside[Symbol.dispose]()
    },
  }
}

testTranscripts(join(import.meta.dir, 'transcripts'), TERMINAL)

describe('a transcript', () => {
  test.each([
    '$ echo a; cat <<end >&2; exit 3\n> b\n>\n> end\n! b\n! \na\n[3]\n\n',
    '$ echo 12; echo 34; echo 12\n{number1}\n{number2}\n{number1}\n$ echo {number2}{number1}\n3412\n$ pwd\n{folder}\n',
    '$ plantstore user list\n! plantstore: There is no database {folder}/plantstore.db: name the one that the server uses.\n[3]\n',
  ])('passes if all is printed as it says: %j', async (text) => {
    expect(await lineOfDifference(text, TERMINAL)).toBeUndefined()
  })

  test.each([
    ['another text', '$ echo a\nb\n', 2],
    ['nothing', '$ true\na\n', 2],
    ['more', '$ cat <<end\n> b\n> end\nb\n\n$ echo a; echo b\na\n$ false\n', 7],
    ['on stderr', '$ echo a >&2\na\n', 2],
    ['with another exit code', '$ false\n', 2],
    ['another text for a variable', '$ echo 12; echo 34\n{number1}\n{number1}\n', 2],
    ['another text for a variable of an earlier step', '$ echo 12\n{number1}\n$ echo 34\n{number1}\n', 4],
    ['a text of another kind', '$ echo a\n{number}\n', 2],
  ])('fails with the line of a step that prints %s', async (_, text, line) => {
    expect(await lineOfDifference(text, TERMINAL)).toBe(line)
  })
})

import { describe, expect, test } from 'bun:test'
import { parseEnvironmentFile } from '../../src/cli/environment-file.ts'
import { lacks } from '../support/requirement.ts'
import { bootSystemd, SYSTEMD } from './systemd.ts'

/** Files, and the variables that systemd gives to a service. */
const FILES: readonly (readonly [file: string, variables: Readonly<Record<string, string>>])[] = [
  ['', {}],
  ['A=b', { A: 'b' }],
  ['\n \t\nA=b\n\n_a1=c\n', { A: 'b', _a1: 'c' }],
  ['A=b\r\nB="c"\r\n', { A: 'b', B: 'c' }],
  ['# A=a\n;A=a\n \t# it\'s "\nA=b # c\nB=b;c#d\n', { A: 'b # c', B: 'b;c#d' }],
  ['  A \t= b \t c \t\n', { A: 'b \t c' }],
  ['A=\nB=""\nC=\'\'\n', { A: '', B: '', C: '' }],
  ['A=b\nA=c\n', { A: 'c' }],
  ['A=b=c\nB=$HOME $A %i\nC=é🌱\n', { A: 'b=c', B: '$HOME $A %i', C: 'é🌱' }],
  ['A="b # c" \nB=\' b \'\n', { A: 'b # c', B: ' b ' }],
  ['A="b\nc"\nB=\'b\n\nc\'\n', { A: 'b\nc', B: 'b\n\nc' }],
  ['A="b" \'c\'"d" e"f"\nB=b\'c\'"d"\n', { A: 'bcde"f"', B: 'b\'c\'"d"' }],
  ['A="b\\"c\\\\d\\$e\\`f\\g\\\'"\nB=\'b\\"c\\\\\'\n', { A: 'b"c\\d$e`f\\g\\\'', B: 'b\\"c\\\\' }],
  ['A=b\\"c\\\\d\\e\\\'\nB=b\\ \nC=\\ b\n', { A: 'b"c\\de\'', B: 'b ', C: ' b' }],
  ['A=b\\\nc \\\n  d\nB="b\\\nc"\nC=\'b\\\nc\'\nD=b \\\n\n', { A: 'bc   d', B: 'bc', C: 'b\\\nc', D: 'b ' }],
  ['A=b\u0007\u007f\nB=c\\', { A: 'b\u0007\u007f', B: 'c' }],
]

/** Lines without an assignment, and those that versions of systemd read differently. */
const REFUSED = [
  ...['A', 'export A=b', '1A=b', 'A-B=c', 'A B=c', '=b', '[Service]', '\ufeffA=b', 'Ä=b'],
  ...["A='b", 'A="b', 'A="b\\"', 'A="b\'', 'A="b\0"', 'A=b\ufffd'],
  ...['# b\\', '; b \\\nA=c'],
]

test.each(FILES)('a file of variables is read as systemd reads it: %j', (file, variables) => {
  expect(parseEnvironmentFile(file, 'file').variables).toEqual(variables)
})

test.each(REFUSED)('a file of variables is refused for a line that is none, without its text: %j', (line) => {
  const rule = 'must be NAME=value with closed quotes and in UTF-8, or a comment without \\ at its end.'

  expect(() => parseEnvironmentFile(`B=c\n\n${line}`, 'a.env')).toThrow(`Line 3 of a.env ${rule}`)
})

describe.skipIf(lacks(SYSTEMD))('systemd', () => {
  test('gives a service the same variables of each file', async () => {
    await using systemd = await bootSystemd()
    await systemd.write(
      '/etc/systemd/system/env@.service',
      '[Service]\nType=oneshot\nEnvironmentFile=/run/%i.env\nExecStart=env --null\nStandardOutput=truncate:/run/%i.out\n',
    )
    for (const [index, [file]] of FILES.entries()) await systemd.write(`/run/${index}.env`, file)
    await systemd.run(['systemctl', 'start', ...FILES.map((_, index) => `env@${index}`)])
    const read = FILES.map(async (_, index) => {
      const printed = (await systemd.run(['cat', `/run/${index}.out`])).split('\0')
      const variables = printed.map((line) => [line.replace(/=.*/s, ''), line.replace(/.*?=/s, '')] as const)
      return Object.fromEntries(variables.filter(([name]) => /^(?:[A-Z]|_a1)$/.test(name)))
    })

    expect(await Promise.all(read)).toEqual(FILES.map(([, variables]) => variables))
  })
})

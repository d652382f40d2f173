import { join } from 'node:path'
import { PROJECT } from './run.ts'

/** The instructions of the Dockerfile by stage, with continued lines joined. */
export async function stages(): Promise<readonly (readonly string[])[]> {
  const lines = (await Bun.file(join(PROJECT, 'Dockerfile')).text())
    .replaceAll('\\\n', ' ')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
  return lines.reduce<string[][]>(
    (all, line) => {
      if (line.startsWith('FROM ')) all.push([])
      all.at(-1)?.push(line.replace(/\s+/g, ' '))
      return all
    },
    [[]],
  )
}

/** How the image is run, as the Dockerfile says. */
export async function imageConfiguration() {
  const final = (await stages()).at(-1) ?? []
  const valueAfter = (instruction: string) =>
    final.find((line) => line.startsWith(`${instruction} `))?.slice(instruction.length + 1) ?? ''
  return {
    user: Number(valueAfter('USER').split(':')[0]),
    env: valueAfter('ENV').split(' '),
    args: [...JSON.parse(valueAfter('ENTRYPOINT')), ...JSON.parse(valueAfter('CMD'))] as string[],
    healthcheck: JSON.parse(/ CMD (\[.*\])$/.exec(valueAfter('HEALTHCHECK'))?.[1] ?? '[]') as string[],
  }
}

import { join } from 'node:path'
import { PROJECT } from './run.ts'

/** The arguments of an instruction of the Dockerfile, once for each time that it is there. Continued lines are joined. */
export async function argumentsOf(instruction: string): Promise<readonly string[]> {
  const lines = (await Bun.file(join(PROJECT, 'Dockerfile')).text()).replaceAll(/\\\n\s*/g, '').split('\n')
  return lines.flatMap((line) => (line.startsWith(`${instruction} `) ? line.slice(instruction.length + 1) : []))
}

/** How the image is run, as the Dockerfile says. */
export async function imageConfiguration() {
  const [user = '', env = '', entrypoint = '', command = '', healthcheck = ''] = (
    await Promise.all(['USER', 'ENV', 'ENTRYPOINT', 'CMD', 'HEALTHCHECK'].map(argumentsOf))
  ).flat()
  return {
    user: Number(user.split(':')[0]),
    env: env.split(' '),
    args: [...JSON.parse(entrypoint), ...JSON.parse(command)] as string[],
    healthcheck: JSON.parse(healthcheck.replace(/^.* CMD /, '')) as string[],
  }
}

import { join } from 'node:path'
import { PROJECT } from './run.ts'

/** A job of a workflow. actionlint checks this structure. */
export interface Job {
  readonly needs?: string | readonly string[]
  readonly uses?: string
  readonly strategy?: { readonly matrix: Readonly<Record<string, readonly string[]>> }
  readonly steps?: readonly Step[]
}

interface Step {
  readonly name?: string
  readonly run?: string
}

export const WORKFLOWS = ['check', 'night', 'release', 'site'] as const

/** The path of a GitHub workflow. */
export const pathOfWorkflow = (name: (typeof WORKFLOWS)[number]): string =>
  join(PROJECT, `.github/workflows/${name}.yml`)

/** The jobs of a GitHub workflow. */
export async function jobsOf(name: (typeof WORKFLOWS)[number]): Promise<Readonly<Record<string, Job>>> {
  return (Bun.YAML.parse(await Bun.file(pathOfWorkflow(name)).text()) as { jobs: Record<string, Job> }).jobs
}

/** The command of a step, by the names of its job and of itself in release.yml. */
export async function releaseCommand(job: string, step: string): Promise<string> {
  const command = (await jobsOf('release'))[job]?.steps?.find(({ name }) => name === step)?.run
  if (command === undefined) throw new Error(`the job ${job} has no step "${step}" that runs a command`)
  return command
}

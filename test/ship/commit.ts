import { runWell } from './run.ts'

/** How many digits of the commit a version says. */
const COMMIT_DIGITS = 12

/** The commit that a folder is at, marked as dirty if it is not what is there, and the commit's time. */
export async function describeCommit(folder: string) {
  const name = (await runWell(['git', 'rev-parse', `--short=${COMMIT_DIGITS}`, 'HEAD'], folder)).trim()
  const changes = await runWell(['git', 'status', '--porcelain'], folder)
  const seconds = await runWell(['git', 'show', '--no-patch', '--format=%ct', 'HEAD'], folder)
  return { name: changes === '' ? name : `${name}.dirty`, madeAt: new Date(Number(seconds) * 1000) }
}

import { runWell } from './run.ts'

/** How many digits of the commit a version has. */
const COMMIT_DIGITS = 12

/** The commit of a folder, marked as dirty if files have changed, and the commit's time. */
export async function describeCommit(folder: string) {
  const name = (await runWell(['git', 'rev-parse', `--short=${COMMIT_DIGITS}`, 'HEAD'], folder)).trim()
  const changes = await runWell(['git', 'status', '--porcelain'], folder)
  const seconds = await runWell(['git', 'show', '--no-patch', '--format=%ct', 'HEAD'], folder)
  return { name: changes === '' ? name : `${name}.dirty`, madeAt: new Date(Number(seconds) * 1000) }
}

/** A program of another process: runs statements, prints a line, and ends their transaction when its stdin ends. */
const program = (database: string, statements: readonly string[]) => `
  const { Database } = await import('bun:sqlite')
  const db = new Database(${JSON.stringify(database)}, { readwrite: true })
  db.run('pragma busy_timeout = 20000')
  for (const statement of ${JSON.stringify(statements)}) db.run(statement)
  console.log('holds')
  await Bun.stdin.text()
  db.run('rollback')
  db.close(true)`

/** Lets another process hold a transaction on a database. Resolves when `statements` have begun the transaction. */
export async function holdTransaction(database: string, ...statements: readonly string[]) {
  const child = Bun.spawn([process.execPath, '-e', program(database, statements)], {
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const end = async () => {
    child.kill('SIGKILL')
    await child.exited
  }
  const { done } = await child.stdout.getReader().read()
  if (done) throw new Error(`the process that ran ${statements.join('; ')} has ended with ${await child.exited}`)
  return {
    /** Ends the transaction. Rejects if the process did not hold the transaction until now. */
    async release(): Promise<void> {
      child.stdin.end()
      const exitCode = await child.exited
      if (exitCode !== 0) throw new Error(`the process that ran ${statements.join('; ')} has ended with ${exitCode}`)
    },
    /** Kills the process. */
    kill: end,
    [Symbol.asyncDispose]: end,
  }
}

-- Lists of 20 by users in random order, each after a random id of a range, and no two with the same URL: the service
-- ignores the parameter `request`. Arguments: the file of the tokens, the range's first id and its length, and the
-- number of the first request.
local tokens = {}
local first, length, number

-- Each thread of the load has numbers of its own.
local threads = 0

function setup(thread)
  thread:set("firstOfThread", threads * 1000000)
  threads = threads + 1
end

function init(arguments)
  math.randomseed(42 + firstOfThread)
  for token in io.lines(arguments[1]) do
    tokens[#tokens + 1] = { ["Authorization"] = "Bearer " .. token }
  end
  first = tonumber(arguments[2])
  length = tonumber(arguments[3])
  number = tonumber(arguments[4]) + firstOfThread
end

function request()
  number = number + 1
  local after = first + math.random(0, length - 1)
  return wrk.format("GET", "/plants?limit=20&after=" .. after .. "&request=" .. number, tokens[math.random(#tokens)])
end

-- One create in every N requests, and lists of 20, by users in random order. The ids ascend. Arguments: the file of the tokens,
-- N, and the first id.
local lists = {}
local headers = {}
local every, id
local number = 0

-- Each thread of the load has ids of its own.
local threads = 0

function setup(thread)
  thread:set("firstOfThread", threads * 1000000)
  threads = threads + 1
end

function init(arguments)
  math.randomseed(42 + firstOfThread)
  for token in io.lines(arguments[1]) do
    local authorization = "Bearer " .. token
    lists[#lists + 1] = wrk.format("GET", "/plants?limit=20", { ["Authorization"] = authorization })
    headers[#headers + 1] = { ["Authorization"] = authorization, ["Content-Type"] = "application/json" }
  end
  every = tonumber(arguments[2])
  id = tonumber(arguments[3]) + firstOfThread
end

function request()
  number = number + 1
  local user = math.random(#lists)
  if number % every ~= 0 then return lists[user] end
  id = id + 1
  local body = '{"id":' .. id .. ',"name":"Monstera deliciosa ' .. id .. '","tag":"evergreen"}'
  return wrk.format("POST", "/plants", headers[user], body)
end

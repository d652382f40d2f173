-- Creates plants by users in random order, with ids that ascend. Arguments: the file of the tokens and the first id.
local headers = {}
local id

function init(arguments)
  math.randomseed(42)
  for token in io.lines(arguments[1]) do
    headers[#headers + 1] = { ["Authorization"] = "Bearer " .. token, ["Content-Type"] = "application/json" }
  end
  id = tonumber(arguments[2])
end

function request()
  id = id + 1
  local body = '{"id":' .. id .. ',"name":"Monstera deliciosa ' .. id .. '","tag":"evergreen"}'
  return wrk.format("POST", "/plants", headers[math.random(#headers)], body)
end

-- Argo CD's health of whatever waits and works for itself. Such an object has Ready, Reconciling and Stalled, for the
-- generation that it has looked at; nothing older counts.
local health = { status = "Progressing", message = "the operator has not looked at it yet" }
if obj.metadata.deletionTimestamp ~= nil then
  health.message = "it is being deleted"
  return health
end
local status = obj.status
if status == nil or status.conditions == nil or status.observedGeneration ~= obj.metadata.generation then
  return health
end
health.message = status.message or ""
if obj.spec ~= nil and obj.spec.suspend == true then
  health.status = "Suspended"
  return health
end
for _, condition in ipairs(status.conditions) do
  if condition.type == "Stalled" and condition.status == "True" then
    health.status = "Degraded"
    return health
  end
end
for _, condition in ipairs(status.conditions) do
  if condition.type == "Ready" and condition.status == "True" then
    health.status = "Healthy"
  end
end
return health

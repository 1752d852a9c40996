#include "plugin/collective/elastic/recovery_plan.h"

#include <memory>
#include <utility>

namespace riffle {
namespace {

void take_plans(const PlanSet& plans, RecoveryOrder* order) {
  order->plans = encode(plans);
  order->digest = digest(plans);
}

void choose_plans(const RecoveryPlanning& planning, RecoveryOrder* order) {
  const Fabric& fabric = planning.basis.fabric;
  PlanOptions options = planning.options;
  planning.basis.complete(&options);
  Result<PlanChoice> choice = plan(fabric, planning.bytes, options);
  if (!choice) {  // a kind of plan that was asked for and needs other numbers of nodes
    options.only.clear();
    choice = plan(fabric, planning.bytes, options);
  }
  if (!choice) {
    order->problem = choice.status().message();
    return;
  }
  if (planning.relaxed_plans) choice->plans.relaxed = planning.relaxed_plans(fabric, true);
  take_plans(choice->plans, order);
}

}  // namespace

void plan_recovery(const std::vector<std::vector<std::uint8_t>>& accounts,
                   RecoveryPlanning planning, Background* background,
                   std::function<void(Result<std::vector<std::uint8_t>>)> planned) {
  std::vector<WorkAccount> works;
  for (const std::vector<std::uint8_t>& bytes : accounts) {
    Result<WorkAccount> work = decode_account(bytes);
    if (!work) return planned(work.status());
    works.push_back(std::move(*work));
  }
  auto order = std::make_shared<RecoveryOrder>(order_of(works));
  if (works.size() == 1) {
    take_plans({.lanes = {GroupPlan{.nodes = 1, .levels = {}}}, .name = "alone"}, order.get());
    return planned(encode(*order));
  }
  const auto work = [order, planning = std::move(planning)] {
    choose_plans(planning, order.get());
  };
  const auto then = [order, planned = std::move(planned)] { planned(encode(*order)); };
  if (background != nullptr && background->run(work, then)) return;
  work();
  then();
}

}  // namespace riffle

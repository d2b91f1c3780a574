//! The jail, tried from inside and from outside, as root and as nobody.

mod attacks;
mod attempts;
mod compartment;
mod descriptors;
mod groups;
mod harness;
mod host;
mod life;
mod look;
mod memory;
mod posture;
mod programs;
mod tree_attacks;
mod tree_bounds;
mod trees;
mod users;

use harness::{BOTH, Case, NOBODY, ROOT};

macro_rules! cases {
    ($($who:ident $module:ident::$name:ident,)*) => {
        &[$(Case {
            name: concat!(stringify!($module), "::", stringify!($name)),
            who: $who,
            run: $module::$name,
        }),*]
    };
}

const CASES: &[Case] = cases![
    BOTH attacks::on_a_sealed_child,
    BOTH attacks::on_a_sealed_child_with_jit,
    BOTH attacks::on_a_zygote,
    NOBODY descriptors::kept_ones_land_on_their_targets_however_they_overlap,
    NOBODY descriptors::impossible_targets_are_refused,
    NOBODY descriptors::one_descriptor_travels_with_the_bytes,
    NOBODY descriptors::surplus_descriptors_are_closed,
    NOBODY descriptors::a_closed_peer_is_an_error_and_not_a_signal,
    NOBODY descriptors::waiting_ends_with_data_the_end_or_the_time,
    NOBODY descriptors::only_processes_are_taken_for_processes,
    NOBODY descriptors::signals_are_reset_whatever_the_host_did,
    NOBODY groups::are_not_to_be_had_by_nobody_and_the_reason_says_so,
    ROOT groups::refuse_names_that_are_paths,
    ROOT groups::kill_for_memory,
    ROOT groups::limit_processes,
    ROOT groups::limit_cpu,
    ROOT groups::kill_their_members_when_dropped,
    ROOT groups::of_a_dead_host_are_swept_and_of_a_living_one_not,
    BOTH host::the_doctor_finds_this_host_fit,
    ROOT host::without_user_namespaces_root_falls_back_and_nobody_is_refused,
    BOTH host::what_is_not_enforced_is_an_error_that_names_it,
    ROOT host::root_is_never_jailed_as_root,
    BOTH life::init_dies_with_the_outer_process,
    BOTH life::nothing_survives_an_outer_process_that_dies_early,
    BOTH life::the_outer_process_ends_as_init_ended,
    BOTH life::children_die_with_their_zygote_and_only_they,
    BOTH life::everything_dies_with_init,
    BOTH life::the_cpu_timer_kills_a_sealed_child,
    BOTH life::memory_is_what_was_touched,
    BOTH life::only_the_cpu_limit_kills_init,
    BOTH life::a_sealed_child_can_be_stopped_while_it_waits,
    BOTH life::an_ignored_sigchld_loses_no_status,
    BOTH memory::the_size_in_use_is_what_the_kernel_counts,
    BOTH memory::a_zygote_limits_itself_to_what_it_uses_and_some,
    BOTH posture::seen_from_inside,
    BOTH posture::seen_from_outside,
    ROOT posture::seen_from_inside_without_user_namespace,
    BOTH programs::see_and_reach_nothing_but_what_they_are_given,
    BOTH programs::have_pipes_and_give_their_status,
    BOTH programs::are_what_they_seem_from_outside,
    BOTH programs::end_at_their_limits,
    BOTH programs::outlive_the_thread_and_not_the_process_that_started_them,
    BOTH programs::start_from_many_threads_at_once,
    BOTH programs::that_cannot_be_jailed_do_not_start,
    ROOT programs::need_user_namespaces_unless_root_starts_them,
    BOTH trees::run_node,
    BOTH trees::run_python,
    BOTH tree_attacks::see_nothing_of_the_host,
    BOTH tree_attacks::write_only_where_they_may,
    BOTH tree_attacks::gain_nothing_from_set_user_id_files,
    ROOT tree_attacks::write_as_the_owner_of_what_is_shared,
    BOTH tree_attacks::are_refused_dangerous_calls,
    BOTH tree_attacks::have_a_network_with_nobody_in_it,
    BOTH tree_attacks::cannot_tell_what_others_have_read,
    BOTH tree_attacks::set_no_options_of_sockets_that_they_do_not_need,
    BOTH tree_attacks::connect_to_no_socket_of_the_host,
    BOTH trees::are_reached_through_the_host_alone,
    BOTH trees::are_ended_whoever_has_their_sockets,
    BOTH trees::have_ended_by_themselves_before_they_are_cleared_away,
    BOTH tree_bounds::cannot_multiply_without_bound,
    BOTH tree_bounds::end_when_they_take_too_much_memory,
    BOTH tree_bounds::are_measured_as_a_whole,
    BOTH tree_bounds::are_measured_when_their_first_thread_has_ended,
    BOTH tree_bounds::pay_for_children_that_nobody_waits_for,
    BOTH tree_bounds::page_tables_and_sockets_are_memory,
    ROOT tree_bounds::have_their_share_of_the_cpu_when_they_are_told,
    BOTH tree_bounds::leave_neither_zombies_nor_daemons,
    BOTH tree_bounds::are_asked_to_end,
    BOTH tree_bounds::end_with_the_host,
    ROOT tree_bounds::cost_the_host_little_memory,
    BOTH trees::are_furnished_in_order,
    ROOT trees::are_furnished_apart_from_a_host_that_shares_its_mounts,
    ROOT trees::need_no_user_namespaces_when_root_starts_them,
    ROOT users::descriptors_in_flight_of_one_jail_are_not_anothers,
    ROOT users::pipe_pages_of_one_jail_are_not_anothers,
    ROOT users::watchers_of_one_jail_are_not_anothers,
    ROOT users::each_jail_has_its_own,
    ROOT users::a_descriptor_waits_until_it_can_travel,
];

fn main() -> std::process::ExitCode {
    match std::env::var(programs::PROBE) {
        Ok(probe) => programs::probe(&probe),
        Err(_) => harness::main(CASES),
    }
}
